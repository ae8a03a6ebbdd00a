"""The calls about sessions and turns: read the request strictly, ask the registry, say what it said.

Knows nothing of leases, journals or runtimes; every failure is an ``EdgeError`` that the one table
in ``edge.web.problems`` turns into an answer.
"""

from __future__ import annotations

from quart import Response, request

from edge.core.control import ReconnectReason
from edge.core.cursor import START
from edge.core.errors import Draining, JournalUnavailable, Overloaded
from edge.core.event import compact_json
from edge.core.requests import TurnStarted
from edge.ports import Principal
from edge.web import headers, shapes
from edge.web.bodies import read_json, read_json_if_any
from edge.web.event_stream import send_away, stream_viewer
from edge.web.parts import Parts
from edge.web.problems import Refused


def json_response(value: object, status: int = 200) -> Response:
    """Return ``value`` as JSON that no cache keeps."""
    response = Response(compact_json(value), status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


class SessionRoutes:
    """One method per call; the table in ``edge.web.app`` binds them to their addresses."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._registry = parts.registry

    async def create_session(self) -> Response:
        caller = await self._writer()
        shapes.read_nothing(await read_json(request))
        session_id = await self._registry.create_session(caller.uid)
        return json_response({"session_id": session_id, "cursor": str(START)}, 201)

    async def snapshot(self, session_id: str) -> Response:
        caller = await self._caller()
        headers.check_ids(session_id)
        return json_response(await self._registry.snapshot(caller.uid, session_id))

    async def start_turn(self, session_id: str) -> Response:
        caller = await self._writer()
        headers.check_ids(session_id)
        key = headers.read_idempotency_key(request)
        turn = shapes.read_turn(await read_json(request), key)
        started = await self._registry.start_turn(caller.uid, session_id, turn)
        response = await self._stream_turn(caller, session_id, started)
        if started.replayed:
            response.headers["Idempotency-Replayed"] = "true"
        return response

    async def events(self, session_id: str) -> Response:
        caller = await self._caller()
        headers.check_ids(session_id)
        cursor, until = headers.read_cursor(request), headers.read_until(request)
        framing = self._parts.framing
        ping = framing.ping_event if headers.wants_ping_events(request) else framing.ping
        if not headers.accepts_stream(request):
            raise Refused("not-acceptable")
        if self._registry.draining:
            return self._send_away("rolling")
        try:
            viewer = await self._registry.attach(caller.uid, session_id, cursor, until)
        except Draining:
            return self._send_away("rolling")
        except (Overloaded, JournalUnavailable):
            return self._send_away("busy")
        if viewer is None:
            return Response(status=204)
        return stream_viewer(request, caller, viewer, self._parts, ping)

    async def cancel(self, session_id: str, turn_id: str) -> Response:
        caller = await self._writer()
        headers.check_ids(session_id, turn_id)
        shapes.read_nothing(await read_json_if_any(request))
        if await self._registry.cancel(caller.uid, session_id, turn_id) == "done":
            return json_response({"state": "done"})
        return json_response({"state": "cancelling"}, 202)

    async def resolve(self, session_id: str, turn_id: str, call_id: str) -> Response:
        caller = await self._writer()
        headers.check_ids(session_id, turn_id, call_id)
        decision = shapes.read_decision(await read_json(request))
        await self._registry.resolve(caller.uid, session_id, turn_id, call_id, decision)
        return json_response({"state": "accepted"}, 202)

    async def _caller(self) -> Principal:
        return await headers.read_caller(request, self._parts.authenticator)

    async def _writer(self) -> Principal:
        """Return the caller of a write, which a draining instance leaves to the next one."""
        caller = await self._caller()
        if self._registry.draining:
            raise Draining
        return caller

    async def _stream_turn(
        self, caller: Principal, session_id: str, started: TurnStarted
    ) -> Response:
        """Return the turn as JSON, or as the stream of it that the caller asked for."""
        if headers.prefers_stream(request):
            viewer = await self._registry.attach(caller.uid, session_id, started.cursor, "turn_end")
            if viewer is not None:
                return stream_viewer(request, caller, viewer, self._parts, self._parts.framing.ping)
        turn = {"turn_id": started.turn_id, "cursor": str(started.cursor)}
        return json_response({"session_id": session_id, **turn}, 202)

    def _send_away(self, reason: ReconnectReason) -> Response:
        return send_away(self._parts.reconnect(reason), self._parts.framing)
