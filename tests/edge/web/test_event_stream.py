"""One stream over real sockets: first byte, pings, endings, and what remains of a client that left."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import h11
import pytest

from edge.core.control import CaughtUp, Control, Rewind
from edge.core.cursor import Cursor
from edge.core.errors import Draining, JournalUnavailable, Overloaded
from edge.sessions.tail import Shown
from edge.web.app import build_app
from edge.wire.native import PING, PING_EVENT
from tests.edge.web.scripted_registry import SESSION, ScriptedRegistry, ScriptedViewer, shown
from tests.support.http_client import PATIENCE_SECONDS, Exchange, exchange
from tests.support.live_edge import parts_for, served

EVENTS = f"/v1/sessions/{SESSION}/events"
SSE = [("Accept", "text/event-stream")]


def watching(viewer: ScriptedViewer) -> ScriptedRegistry:
    return ScriptedRegistry(viewer=viewer)


async def closed(viewer: ScriptedViewer) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await viewer.closed.wait()


@pytest.mark.proves("T15", "T16", "T17", "P-SSE-3")
async def test_headers_and_a_comment_arrive_before_there_is_anything_to_say() -> None:
    viewer = ScriptedViewer(hangs=True, start=Cursor(3, 9))
    async with served(watching(viewer)) as port, exchange(port, "GET", EVENTS, SSE) as stream:
        assert (stream.status, await stream.data()) == (200, PING)
        headers = stream.headers
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        assert headers["cache-control"] == "no-store, no-transform"
        assert headers["x-accel-buffering"] == "no"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["last-event-id"] == "3-9"
        assert "content-encoding" not in headers
        assert "connection" not in headers


async def test_what_is_ready_together_leaves_in_one_chunk() -> None:
    batch: list[Shown | Control] = [Rewind(Cursor(1, 1)), shown(2), shown(3, "done"), CaughtUp()]
    registry = watching(ScriptedViewer([batch]))
    async with served(registry) as port, exchange(port, "GET", EVENTS, SSE) as stream:
        assert await stream.data() == PING
        messages = stream.parser.feed(await stream.data())
        assert [message.type for message in messages] == ["rewind", "token", "done", "caught_up"]
        assert await stream.data() == b""
        assert stream.ended


async def test_an_empty_batch_is_a_ping() -> None:
    registry = watching(ScriptedViewer([[], []]))
    async with served(registry) as port, exchange(port, "GET", EVENTS, SSE) as stream:
        assert await stream.body() == PING * 3


@pytest.mark.proves("T52", "P-SSE-20")
async def test_pings_are_events_for_whoever_asks() -> None:
    registry = watching(ScriptedViewer([[], [shown(1)], []]))
    target = f"{EVENTS}?pings=event"
    async with served(registry) as port, exchange(port, "GET", target, SSE) as stream:
        assert await stream.body() == PING_EVENT * 2 + shown(1).frame + PING_EVENT


async def test_nothing_left_to_say_is_204() -> None:
    registry = ScriptedRegistry(viewer=None)
    async with served(registry) as port, exchange(port, "GET", EVENTS, SSE) as stream:
        assert (stream.status, await stream.body()) == (204, b"")


@pytest.mark.parametrize("failure", [JournalUnavailable("hunter2"), ValueError("hunter2")])
@pytest.mark.proves("T01")
async def test_a_stream_that_fails_says_so_and_ends_at_once_and_resumably(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    viewer = ScriptedViewer([[shown(1)], [shown(2)]], failure=failure)
    async with served(watching(viewer)) as port, exchange(port, "GET", EVENTS, SSE) as stream:
        messages = await stream.messages()
        assert [message.type for message in messages] == ["token", "token", "reconnect"]
        assert (messages[-1].json, messages[-1].last_event_id) == ({"reason": "busy"}, "1-2")
        assert stream.ended
    await closed(viewer)
    assert [record.levelno >= logging.WARNING for record in caplog.records] == [True]
    assert "hunter2" not in caplog.records[0].getMessage()


@pytest.mark.proves("T02")
async def test_a_stream_outlives_every_response_timeout() -> None:
    viewer = ScriptedViewer(hangs=True)
    app = build_app(parts_for(watching(viewer)))
    app.config["RESPONSE_TIMEOUT"] = 0.001
    connection = app.test_client().request(EVENTS, headers={"Host": "localhost"})
    async with connection as stream:
        assert await stream.receive() == PING
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(viewer.closed.wait()), 0.1)
        await stream.disconnect()
    await closed(viewer)


async def test_a_client_that_leaves_a_quiet_stream_is_forgotten() -> None:
    viewer = ScriptedViewer(hangs=True)
    async with served(watching(viewer)) as port:
        async with exchange(port, "GET", EVENTS, SSE) as stream:
            await stream.data()
        await closed(viewer)


@pytest.mark.proves("T06", "T11")
async def test_a_replay_to_a_client_that_left_stops_and_others_are_served_meanwhile() -> None:
    viewer = ScriptedViewer([[shown(1)] * 50], endless=True)
    async with served(watching(viewer)) as port:
        async with exchange(port, "GET", EVENTS, SSE) as stream:
            await stream.until("token")
            async with exchange(port, "GET", "/healthz") as other:
                assert other.status == 200
        await closed(viewer)
        taken = viewer.taken
        async with exchange(port, "GET", "/healthz") as other:
            assert other.status == 200
        assert viewer.taken == taken


@pytest.mark.proves("T04", "T12")
async def test_a_client_that_stops_reading_can_be_closed_while_a_send_is_stuck() -> None:
    viewer = ScriptedViewer([[shown(1, data='"' + "x" * 60_000 + '"')]], endless=True)
    async with served(watching(viewer), stall_seconds=1.0) as port:
        async with exchange(port, "GET", EVENTS, SSE):
            await _stuck(viewer)
            viewer.on_stall()
            await closed(viewer)
        assert viewer.taken < 200


@pytest.mark.proves("T04")
async def test_a_stalled_connection_ends_even_if_its_client_reads_again() -> None:
    viewer = ScriptedViewer([[shown(1, data='"' + "x" * 60_000 + '"')]], endless=True)
    async with served(watching(viewer)) as port, exchange(port, "GET", EVENTS, SSE) as stream:
        await _stuck(viewer)
        viewer.on_stall()
        with pytest.raises(h11.RemoteProtocolError):
            await stream.body()


async def _stuck(viewer: ScriptedViewer) -> None:
    """Wait until the viewer is asked for nothing more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        taken = -1
        while taken != viewer.taken:
            taken = viewer.taken
            for _ in range(2_000):
                await asyncio.sleep(0)


async def test_a_viewer_is_closed_even_if_its_stream_never_began() -> None:
    viewer = ScriptedViewer(hangs=True)
    app = build_app(parts_for(watching(viewer)))

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def broken_send(_message: Any) -> None:
        raise ConnectionError

    scope = {
        "type": "http", "method": "GET", "scheme": "http", "http_version": "1.1", "root_path": "",
        "path": EVENTS, "raw_path": EVENTS.encode(), "query_string": b"", "client": ("x", 1),
        "headers": [(b"host", b"localhost")],
    }  # fmt: skip
    with pytest.raises((ConnectionError, ExceptionGroup)):  # depends on Quart's release
        await app(scope, receive, broken_send)  # type: ignore[arg-type]
    assert viewer.closed.is_set()


@pytest.mark.proves("T45", "P-SSE-16")
@pytest.mark.parametrize(
    ("registry", "reason"),
    [
        (ScriptedRegistry(draining=True), "rolling"),
        (ScriptedRegistry(failure=Draining()), "rolling"),
        (ScriptedRegistry(failure=Overloaded()), "busy"),
        (ScriptedRegistry(failure=JournalUnavailable()), "busy"),
    ],
)
async def test_a_browser_that_cannot_be_served_here_is_told_to_come_back(
    registry: ScriptedRegistry, reason: str
) -> None:
    async with served(registry) as port, exchange(port, "GET", EVENTS, SSE) as stream:
        assert stream.status == 200
        (message,) = await stream.messages()
        assert (message.type, message.json) == ("reconnect", {"reason": reason})
        assert stream.parser.retry_ms == 1_500
        assert stream.ended


async def _first(port: int, target: str, headers: list[tuple[str, str]]) -> Exchange:
    async with exchange(port, "GET", target, [*SSE, *headers]) as stream:
        await stream.body()
        return stream


@pytest.mark.proves("T42", "T44", "P-SSE-1")
@pytest.mark.parametrize(
    ("query", "header", "expected"),
    [
        ("", None, None),
        ("", "2-57", Cursor(2, 57)),
        ("?last_event_id=2-57", None, Cursor(2, 57)),
        ("?lastEventId=2-57", None, Cursor(2, 57)),
        ("?last_event_id=2-57", "3-60", Cursor(3, 60)),
        ("?last_event_id=nonsense", "3-60", Cursor(3, 60)),
    ],
)
async def test_the_cursor_comes_from_the_header_or_else_from_the_query(
    query: str, header: str | None, expected: Cursor | None
) -> None:
    registry = ScriptedRegistry(viewer=ScriptedViewer())
    async with served(registry) as port:
        await _first(port, EVENTS + query, [("Last-Event-ID", header)] if header else [])
    assert registry.calls == [("attach", "local", SESSION, expected, "turn_end")]


async def test_a_stream_may_follow_the_session_from_turn_to_turn() -> None:
    registry = ScriptedRegistry(viewer=ScriptedViewer())
    async with served(registry) as port:
        await _first(port, f"{EVENTS}?until=follow", [])
    assert registry.calls[0][-1] == "follow"
