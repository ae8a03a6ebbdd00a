"""Streams in formats of other makers: how they end, whatever ends them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import h11
import pytest

from edge.core.control import CaughtUp, Control, Reauth, Reconnect, Reset, Rewind, Status
from edge.core.cursor import Cursor
from edge.core.errors import JournalUnavailable
from edge.sessions.tail import Shown
from tests.edge.web.scripted_registry import ScriptedRegistry, ScriptedViewer, shown
from tests.support.http_client import PATIENCE_SECONDS, exchange
from tests.support.live_edge import served

RESUME = "/v1/ai-sdk/v7/abcdefghijklmnop/stream"
TURN = shown(1, "turn_start", '{"turn_id":"t1","attempt":1}')
TOKEN = shown(2, "token", '{"turn_id":"t1","message_id":"m1","text":"Hi"}')
DONE = shown(3, "done", '{"turn_id":"t1","outcome":"completed"}')
PING = b": ping\n"


def told(
    *batches: Sequence[Shown | Control], failure: BaseException | None = None
) -> ScriptedRegistry:
    return ScriptedRegistry(viewer=ScriptedViewer([*batches], failure=failure))


async def test_a_stream_that_is_over_ends_tidily_and_asks_for_no_more() -> None:
    registry = told([TURN, CaughtUp()], [], [TOKEN, DONE], [Reset("gap", 9)])
    async with served(registry) as port, exchange(port, "GET", RESUME) as stream:
        body = await stream.body()
    assert stream.ended
    assert body.startswith(PING) and body.endswith(b"data: [DONE]\n\n")
    assert body.count(PING) == 2
    assert registry.viewer is not None
    assert registry.viewer.taken == 3


async def test_a_stream_goes_on_past_an_end_that_it_only_replays() -> None:
    registry = told([TURN, DONE], [CaughtUp()])
    async with served(registry) as port, exchange(port, "GET", RESUME) as stream:
        assert (await stream.body()).endswith(PING)
    assert registry.viewer is not None
    assert registry.viewer.taken == 2


@pytest.mark.proves("P-AI-5", "P-AGUI-12", "P-SSE-21", "S57")
@pytest.mark.parametrize(
    "registry",
    [
        told([TURN, CaughtUp(), TOKEN]),
        told([TURN, CaughtUp()], [Reconnect("rolling", 100)], [DONE]),
        told([TURN, CaughtUp()], [Reconnect("deadline", 100)], [DONE]),
        told([TURN, CaughtUp()], [Reauth(60_000)], [Reconnect("token_expired", 100)], [DONE]),
        told([TURN, TOKEN, CaughtUp()], [Reset("gap", 9)], [DONE]),
    ],
)
async def test_a_stream_that_is_not_over_is_cut(
    registry: ScriptedRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(registry) as port, exchange(port, "GET", RESUME) as stream:
        with pytest.raises(h11.RemoteProtocolError):
            await stream.body()
    assert registry.viewer is not None
    assert registry.viewer.closed.is_set()
    assert caplog.records == []


@pytest.mark.parametrize("failure", [JournalUnavailable("hunter2"), ValueError("hunter2")])
@pytest.mark.proves("P-AI-5", "T01")
async def test_a_stream_that_fails_is_cut_and_logged(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    registry = told([TURN, CaughtUp(), TOKEN], failure=failure)
    async with served(registry) as port, exchange(port, "GET", RESUME) as stream:
        with pytest.raises(h11.RemoteProtocolError):
            await stream.body()
    assert [record.levelno >= logging.WARNING for record in caplog.records] == [True]
    assert "hunter2" not in caplog.records[0].getMessage()


async def test_a_rewind_is_told_and_a_status_is_not() -> None:
    registry = told([TURN, CaughtUp(), TOKEN], [Status("degraded")], [Rewind(Cursor(1, 1))], [DONE])
    async with served(registry) as port, exchange(port, "GET", RESUME) as stream:
        body = await stream.body()
    assert b"reset-step" in body and b"degraded" not in body


async def test_a_client_that_leaves_is_forgotten() -> None:
    registry = told([TURN, CaughtUp(), TOKEN])
    assert registry.viewer is not None
    registry.viewer.hangs = True
    async with served(registry) as port:
        async with exchange(port, "GET", RESUME) as stream:
            await stream.data()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await registry.viewer.closed.wait()


@pytest.mark.proves("T06", "T11")
async def test_a_replay_to_a_client_that_left_stops_and_others_are_served_meanwhile() -> None:
    registry = told([TURN, CaughtUp()], [TOKEN])
    assert registry.viewer is not None
    registry.viewer.endless = True
    async with served(registry) as port:
        async with exchange(port, "GET", RESUME) as stream:
            await stream.data()
            async with exchange(port, "GET", "/healthz") as other:
                assert other.status == 200
        async with asyncio.timeout(PATIENCE_SECONDS):
            await registry.viewer.closed.wait()
