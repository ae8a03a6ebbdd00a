"""Tokens that expire amid a stream, over real sockets: how each kind of stream ends, and what the old token is worth."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import h11
import pytest

from edge.main import WallClock
from tests.support.http_client import Exchange, ask, exchange, post
from tests.support.issuer import Issuer, bearer, ends_in, token
from tests.support.live_edge import LiveEdge, live_edge
from tests.support.scripted_runtime import ScriptedRuntime, emit, hang, text

pytestmark = pytest.mark.realtime  # a token is believed for seconds at least

JSON = ("Content-Type", "application/json")
CHAT = "abcdefghijklmnop"
THREAD = "a-thread-of-a-client"
LIFE_SECONDS = 4.0
PATIENCE_SECONDS = 40.0
TOLD = ["turn_start", "token", "reauth", "reconnect"]

Call = tuple[str, str, bytes]


def post_of(path: str, **body: Any) -> Call:
    return "POST", path, json.dumps(body).encode()


USER = {"id": "u1", "role": "user", "content": "Hi", "parts": [{"type": "text", "text": "Hi"}]}
RUN_INPUT = {"threadId": THREAD, "runId": "run-1", "messages": [USER]}
SEND = post_of("/v1/ai-sdk/v7", id=CHAT, trigger="submit-message", messages=[USER])
RESUME = ("GET", f"/v1/ai-sdk/v7/{CHAT}/stream", b"")
RUN = post_of("/v1/ag-ui/agent/default/run", **RUN_INPUT)
CONNECT = post_of("/v1/ag-ui/agent/default/connect", **RUN_INPUT)


async def native_turn(edge: LiveEdge, user: tuple[str, str]) -> str:
    """Start a turn that does not end, and return the path of its events."""
    session_id = (await post(edge.port, "/v1/sessions", {}, user)).json["session_id"]
    path = f"/v1/sessions/{session_id}"
    key = ("Idempotency-Key", "k" * 16)
    assert (await post(edge.port, f"{path}/turns", {"input": "Hi"}, user, key)).status == 202
    return f"{path}/events"


async def cut(stream: Exchange) -> bytes:
    """Return what came before the connection was cut."""
    body = b""
    try:
        while piece := await stream.data():
            body += piece
    except h11.RemoteProtocolError:
        return body
    raise AssertionError("the stream came to a tidy end")


@pytest.mark.proves("T50", "S82", "P-SSE-21", "P-HTTP-18", "P-AI-5", "P-AGUI-12")
async def test_streams_of_every_kind_end_with_their_token_and_with_another_one_they_go_on() -> None:
    runtime = ScriptedRuntime()
    for _ in range(3):
        runtime.play(emit(text("m1", "Hel")), hang())
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        Issuer().serve() as issuer,
        live_edge(runtime, authenticator=issuer.authenticator(), clock=WallClock()) as edge,
        AsyncExitStack() as opened,
    ):
        path = await native_turn(edge, bearer(token()))
        short, fresh = bearer(token(exp=ends_in(LIFE_SECONDS))), bearer(token())

        async def opening(user: tuple[str, str], call: Call) -> Exchange:
            return await opened.enter_async_context(
                exchange(edge.port, call[0], call[1], [JSON, user], call[2])
            )

        native = ("GET", path, b"")
        stream, *kits = [await opening(short, c) for c in (native, SEND, RESUME, RUN, CONNECT)]
        messages = await stream.messages()
        assert [m.type for m in messages if m.type != "caught_up"] == TOLD
        assert 0 < messages[-2].json["in_ms"] <= 1000 * LIFE_SECONDS
        assert messages[-1].json == {"reason": "token_expired"}
        assert stream.parser.retry_ms is not None
        for kit in kits:
            told = await cut(kit)
            assert b"Hel" in told and b"reauth" not in told
        for call in (native, RESUME, CONNECT):
            refused = await ask(edge.port, call[0], call[1], [JSON, short], call[2])
            assert (refused.status, refused.code) == (401, "token-expired")
            assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
            assert (await opening(fresh, call)).status == 200
        assert runtime.left == []  # the turns go on
