"""The calls that the AI SDK's ``useChat`` makes, so that it works as it comes: send, resume, and a stop.

Knows nothing of the format's frames. A chat is a session under the id that the client gave it, created by its
first message. The client has no cursor: it is told its turn from the start, or, when it brings decisions, from
where it waited for them.
"""

from __future__ import annotations

import json

from quart import Response, request

from edge.core.errors import SessionExpired, SessionNotFound, ToolCallNotFound
from edge.core.recap import Recap
from edge.ports import Principal
from edge.web import headers
from edge.web.ai_sdk_bodies import ChatRequest, decisions, read_chat, turn_request
from edge.web.bodies import read_chat_json, read_json_if_any
from edge.web.encoded_stream import stream_encoded
from edge.web.parts import Parts, TurnFormat
from edge.web.session_routes import json_response
from edge.web.shapes import read_nothing


class AiSdkRoutes:
    """One method per call, for one major of the client."""

    def __init__(self, parts: Parts, turn_format: TurnFormat) -> None:
        self._parts = parts
        self._registry = parts.registry
        self._format = turn_format

    async def send(self) -> Response:
        """Start the turn of a user's message, or go on with one that waited, and stream it."""
        caller = await self._caller()
        chat = read_chat(await read_chat_json(request))
        headers.check_ids(chat.chat_id)
        if not chat.from_user:
            recap, after_seq = await self._decide(caller.uid, chat)
            return await self._stream(caller, chat.chat_id, recap, after_seq)
        turn_id = await self._start(caller.uid, chat)
        recap = await self._recap(caller.uid, chat.chat_id, turn_id)
        return await self._stream(caller, chat.chat_id, recap)

    async def resume(self, chat_id: str) -> Response:
        """Stream the newest turn from its start, whether it goes on, waits or is over.

        A client whose connection was cut has nothing else to learn from how the turn ended.
        """
        caller = await self._caller()
        headers.check_ids(chat_id)
        try:
            recap = await self._registry.recap(caller.uid, chat_id)
        except (SessionNotFound, SessionExpired):
            recap = None  # before its first message, or long after its last
        if recap is None:
            return Response(status=204)
        return await self._stream(caller, chat_id, recap)

    async def stop(self, chat_id: str) -> Response:
        """Stop the newest turn. The client's own ``stop`` only leaves."""
        uid = (await self._caller()).uid
        headers.check_ids(chat_id)
        read_nothing(await read_json_if_any(request))
        recap = await self._registry.recap(uid, chat_id)
        if recap is None or await self._registry.cancel(uid, chat_id, recap.turn_id) == "done":
            return json_response({"state": "done"})
        return json_response({"state": "cancelling"}, 202)

    async def _start(self, uid: str, chat: ChatRequest) -> str:
        await self._registry.claim_session(uid, chat.chat_id)
        instead_of = ""
        if chat.again:
            newest = await self._registry.recap(uid, chat.chat_id)
            if newest is not None and _asked(newest) == chat.message_id:
                if not newest.finished:
                    return newest.turn_id  # the answer is under way already
                instead_of = newest.turn_id
        turn = turn_request(chat, instead_of)
        return (await self._registry.start_turn(uid, chat.chat_id, turn)).turn_id

    async def _decide(self, uid: str, chat: ChatRequest) -> tuple[Recap, int]:
        """Bring the decisions to the calls that wait, and return where the turn goes on."""
        recap = await self._recap(uid, chat.chat_id)
        if (suspension := recap.suspension) is None:
            raise ToolCallNotFound
        pending = json.loads(suspension.data)["pending_call_ids"]
        made = decisions(chat, pending)
        if not made or not made.keys() >= set(recap.waiting):
            raise ToolCallNotFound  # half an answer would leave the client with a stream that says nothing
        for call_id, decision in made.items():
            await self._registry.resolve(uid, chat.chat_id, recap.turn_id, call_id, decision)
        return await self._recap(uid, chat.chat_id, recap.turn_id), suspension.seq

    async def _recap(self, uid: str, chat_id: str, turn_id: str = "") -> Recap:
        recap = await self._registry.recap(uid, chat_id, turn_id)
        if recap is None:
            raise SessionNotFound
        return recap

    async def _stream(
        self, caller: Principal, chat_id: str, recap: Recap, after_seq: int = 0
    ) -> Response:
        viewer = await self._registry.attach(caller.uid, chat_id, recap.before, "turn_end")
        if viewer is None:
            raise SessionNotFound
        encoder = self._format.encoder(recap, after_seq)
        return stream_encoded(request, caller, viewer, encoder, self._format.dialect)

    async def _caller(self) -> Principal:
        return await headers.read_caller(request, self._parts.authenticator)


def _asked(recap: Recap) -> str:
    """Return what the client calls the message that the turn answers."""
    return str(json.loads(recap.events[0].data).get("message_id", ""))
