"""The calls of AG-UI's ``HttpAgent`` and of CopilotKit: run, connect, stop and info.

Knows nothing of the format's frames. A thread is a session under the id that the client gave it, and a run is a
turn, or what is left of one that waited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from quart import Response, request

from edge.core.errors import SessionNotFound, ToolCallNotFound
from edge.core.event import TOOL_START
from edge.core.recap import Recap
from edge.ports import Listener, Principal
from edge.web import headers
from edge.web.ag_ui_bodies import DEFAULT_AGENT, Answer, RunInput, decision, read_run, turn_request
from edge.web.bodies import read_chat_json, read_json_if_any
from edge.web.encoded_stream import stream_encoded, stream_nothing
from edge.web.parts import Parts
from edge.web.session_routes import json_response

VERSION = "1.0"


class AgUiRoutes:
    """One method per call; the table in ``edge.web.app`` binds them to their addresses."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._registry = parts.registry
        self._format = parts.ag_ui

    async def run(self, agent: str) -> Response:
        """Start the turn of a user's message, or go on with one that waited, and stream it."""
        caller = await self._caller()
        run = await self._read()
        if run.resume or (run.results and not run.message):
            return await self._stream(caller, run, await self._decide(caller.uid, run))
        turn = turn_request(run, agent)
        await self._registry.claim_session(caller.uid, run.thread_id)
        started = await self._registry.start_turn(caller.uid, run.thread_id, turn)
        after_seq = None if started.replayed else started.cursor.seq
        return await self._stream(caller, run, _listener(run, after_seq))

    async def connect(self, agent: str) -> Response:
        """Replay the thread, whichever agent it speaks with, and go on to the end of an open run."""
        caller = await self._caller()
        run = await self._read()
        try:
            return await self._stream(caller, run, _listener(run))
        except SessionNotFound:
            return stream_nothing(self._format.dialect)  # a thread before its first message

    async def stop(self, agent: str, thread_id: str) -> Response:
        """Stop the thread's turn, whichever run of it the client means: there is only one."""
        uid = (await self._caller()).uid
        headers.check_ids(thread_id)
        await read_json_if_any(request)
        recap = await self._registry.recap(uid, thread_id)
        if recap is None or await self._registry.cancel(uid, thread_id, recap.turn_id) == "done":
            return json_response({"stopped": False})
        return json_response({"stopped": True})

    async def info(self) -> Response:
        """Say which agents there are, as CopilotKit asks before anything else."""
        await self._caller()
        names = (DEFAULT_AGENT, *await self._registry.agents())
        agents = {name: {"name": name, "description": ""} for name in names}
        told = {"version": VERSION, "agents": agents, "mode": "sse"}
        return json_response(told | {"audioFileTranscriptionEnabled": False})

    async def _read(self) -> RunInput:
        run = read_run(await read_chat_json(request))
        headers.check_ids(run.thread_id)
        return run

    async def _decide(self, uid: str, run: RunInput) -> Listener:
        """Bring the answers to the calls that wait, and return where the turn goes on."""
        recap = await self._registry.recap(uid, run.thread_id)
        if recap is None or (suspension := recap.suspension) is None:
            raise ToolCallNotFound
        pending = json.loads(suspension.data)["pending_call_ids"]
        asked = {self._format.name(recap.turn_id, call_id): call_id for call_id in pending}
        answers = _answers(run, asked)
        if not answers.keys() >= set(recap.waiting):
            raise ToolCallNotFound  # half an answer would leave the client with a stream that says nothing
        executors = _executors(recap)
        # A runtime may wait for a call that it never began.
        made = {c: decision(a, executors.get(c, "runtime")) for c, a in answers.items()}
        for call_id, decided in made.items():
            await self._registry.resolve(uid, run.thread_id, recap.turn_id, call_id, decided)
        return _listener(run, suspension.seq)

    async def _stream(self, caller: Principal, run: RunInput, listener: Listener) -> Response:
        """Stream from the oldest event on: what a run says of earlier ones rests on them."""
        viewer = await self._registry.attach(caller.uid, run.thread_id, None, "follow")
        if viewer is None:
            raise SessionNotFound
        return stream_encoded(
            request, caller, viewer, self._format.encoder(listener), self._format.dialect
        )

    async def _caller(self) -> Principal:
        return await headers.read_caller(request, self._parts.authenticator)


def _listener(run: RunInput, after_seq: int | None = None) -> Listener:
    return Listener(
        thread_id=run.thread_id,
        declares_version=run.declares_version,
        after_seq=after_seq,
        answered=frozenset(run.results),
    )


def _answers(run: RunInput, asked: Mapping[str, str]) -> Mapping[str, Answer]:
    """Return what was brought for each call that waited, by our own ids.

    Raises:
        ToolCallNotFound: an entry of ``resume`` is for another call. Messages of tools repeat old news.
    """
    if not run.resume.keys() <= asked.keys():
        raise ToolCallNotFound
    brought = {**run.results, **run.resume}
    return {asked[name]: answer for name, answer in brought.items() if name in asked}


def _executors(recap: Recap) -> Mapping[str, str]:
    starts = (json.loads(event.data) for event in recap.events if event.type == TOOL_START)
    return {start["call_id"]: start["executor"] for start in starts}
