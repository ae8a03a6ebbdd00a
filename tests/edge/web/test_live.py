"""The whole edge over real sockets: real registry, real gRPC, a scripted runtime behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import pytest_asyncio

from tests.support.http_client import PATIENCE_SECONDS, Answer, ask, exchange, post
from tests.support.live_edge import LiveEdge, NamedUsers, live_edge
from tests.support.scripted_runtime import (
    ScriptedRuntime,
    abort,
    completed,
    emit,
    finished,
    hang,
    text,
    wait_for_cancel,
)

SSE = [("Accept", "text/event-stream")]
KEY = ("Idempotency-Key", "key-0123456789ab")


@pytest_asyncio.fixture
async def runtime() -> ScriptedRuntime:
    return ScriptedRuntime()


@pytest_asyncio.fixture
async def edge(runtime: ScriptedRuntime) -> AsyncIterator[LiveEdge]:
    async with live_edge(runtime, ping_seconds=0.05) as running:
        yield running


def hello(runtime: ScriptedRuntime) -> None:
    runtime.play(
        emit(text("m1", "Hel")), emit(text("m1", "lo"), completed("m1", "Hello"), finished())
    )


@pytest.mark.proves("P-HTTP-2")
async def test_session_ids_are_long_and_never_the_same(edge: LiveEdge) -> None:
    ids = {await edge.session() for _ in range(50)}
    assert len(ids) == 50
    # 22 characters of an alphabet of 64 hold 132 bits.
    assert all(len(session_id) >= 22 for session_id in ids)


@pytest.mark.proves("P-SSE-18", "P-SSE-3")
async def test_a_post_may_stream_its_own_turn_from_its_first_event(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    hello(runtime)
    turns = f"/v1/sessions/{await edge.session()}/turns"
    headers = [*SSE, KEY, ("Content-Type", "application/json")]
    async with exchange(edge.port, "POST", turns, headers, b'{"input":"Hi"}') as stream:
        assert stream.headers["last-event-id"] == "0-0"
        messages = [m for m in await stream.messages() if m.type != "caught_up"]
    assert [m.type for m in messages] == ["turn_start", "token", "token", "message", "done"]
    assert [m.last_event_id for m in messages] == ["1-1", "1-2", "1-3", "1-4", "1-5"]


@pytest.mark.proves("T20", "S58")
async def test_after_a_terminal_event_the_runtimes_call_is_left_though_it_goes_on(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(completed("m1", "Hello"), finished()), hang())
    session_id = await edge.session()
    await edge.turn(session_id)
    async with edge.events(session_id) as stream:
        messages = [m for m in await stream.messages() if m.type != "caught_up"]
    assert messages[-1].type == "done"
    await runtime.until(lambda: runtime.left == ["cancelled"])


@pytest.mark.proves("T26")
async def test_what_the_runtime_refuses_amid_its_answer_is_told_with_its_code_and_not_tried_again(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    refusal = "SERVER: Received message larger than max"
    runtime.play(emit(text("m1", "Hel")), abort(grpc.StatusCode.RESOURCE_EXHAUSTED, refusal))
    session_id = await edge.session()
    await edge.turn(session_id)
    async with edge.events(session_id) as stream:
        messages = [m for m in await stream.messages() if m.type != "caught_up"]
    assert [m.type for m in messages] == ["turn_start", "token", "message", "error"]
    told = messages[-1].json
    assert (told["code"], told["retryable"]) == ("history_too_large", False)
    async with edge.events(session_id, messages[-1].last_event_id) as again:
        assert again.status == 204
    assert len(runtime.requests) == 1


@pytest.mark.proves("P-SSE-13")
async def test_a_stream_says_when_it_has_caught_up(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    hello(runtime)
    session_id = await edge.session()
    await edge.turn(session_id)
    async with edge.events(session_id) as first:
        await first.until("done")
    async with edge.events(session_id, query="?until=follow") as second:
        messages = await second.until("caught_up")
    assert [m.type for m in messages[-2:]] == ["done", "caught_up"]
    assert messages[-1].json == {}


@pytest.mark.proves("P-SSE-4", "T41")
async def test_hostile_input_comes_back_as_the_one_event_that_it_is(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    hello(runtime)
    session_id = await edge.session()
    hostile = "\r\n\r\nid: 9-9\nevent: done\ndata: {}\n\n\u2028\U0001f600"
    await edge.turn(session_id, hostile)
    async with edge.events(session_id) as stream:
        messages = await stream.until("done")
    assert messages[0].json["input"] == [{"type": "text", "text": hostile}]
    assert [m.type for m in messages].count("done") == 1


@pytest.mark.proves("T44", "S30", "P-HTTP-9")
async def test_a_page_loses_nothing_between_its_snapshot_and_its_stream(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    go = asyncio.Event()

    async def wait(_: Any) -> None:
        await asyncio.wait_for(go.wait(), PATIENCE_SECONDS)

    runtime.play(emit(completed("m1", "One")), wait, emit(completed("m2", "Two"), finished()))
    session_id = await edge.session()
    await edge.turn(session_id)
    async with edge.events(session_id) as watching:
        await watching.until("message")
        snapshot = (await ask(edge.port, "GET", f"/v1/sessions/{session_id}")).json
        go.set()
        await watching.until("done")
    query = f"/v1/sessions/{session_id}/events?last_event_id={snapshot['cursor']}"
    async with exchange(edge.port, "GET", query, SSE) as stream:
        rest = [m for m in await stream.messages() if m.type != "caught_up"]
    assert [item["message_id"] for item in snapshot["turns"][0]["items"]] == ["m1"]
    assert [(m.type, m.json.get("message_id")) for m in rest] == [("message", "m2"), ("done", None)]


@pytest.mark.proves("P-SSE-10")
async def test_a_quiet_stream_is_kept_alive_by_comments_alone(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(text("m1", "Hello")), hang())
    session_id = await edge.session()
    await edge.turn(session_id)
    async with edge.events(session_id) as stream:
        await stream.until("token")
        assert await stream.data() == b": ping\n"


@pytest.mark.proves("P-HTTP-4", "P-HTTP-5")
async def test_a_repeated_post_is_answered_with_the_same_turn(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    hello(runtime)
    session_id = await edge.session()
    answers = [await edge.turn(session_id, key="k" * 16) for _ in range(2)]
    assert answers[0].json == answers[1].json
    assert ["idempotency-replayed" in answer.headers for answer in answers] == [False, True]
    other = await edge.turn(session_id, "Other", key="k" * 16)
    assert (other.status, other.code) == (422, "idempotency-key-reused")
    assert len(runtime.requests) <= 1


@pytest.mark.proves("P-HTTP-6")
async def test_a_busy_session_names_its_turn(edge: LiveEdge, runtime: ScriptedRuntime) -> None:
    runtime.play(hang())
    session_id = await edge.session()
    turn_id = (await edge.turn(session_id)).json["turn_id"]
    answer = await edge.turn(session_id)
    assert (answer.status, answer.code, answer.json["turn_id"]) == (
        409,
        "turn-in-progress",
        turn_id,
    )


@pytest.mark.proves("P-HTTP-10")
async def test_a_stop_is_accepted_once_and_then_done(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(text("m1", "Hello")), wait_for_cancel(), emit(finished()))
    session_id = await edge.session()
    turn_id = (await edge.turn(session_id)).json["turn_id"]
    cancel = f"/v1/sessions/{session_id}/turns/{turn_id}/cancel"
    async with edge.events(session_id) as stream:
        await stream.until("token")
        first = await ask(edge.port, "POST", cancel)
        assert (first.status, first.json) == (202, {"state": "cancelling"})
        await stream.until("done")
    again = await ask(edge.port, "POST", cancel)
    assert (again.status, again.json) == (200, {"state": "done"})


def _as(answer: Answer) -> tuple[int, bytes]:
    return answer.status, answer.body


@pytest.mark.proves("S81", "P-HTTP-3", "P-RES-3")
async def test_another_users_session_is_an_unknown_one_whatever_cursor_is_shown(
    runtime: ScriptedRuntime,
) -> None:
    hello(runtime)
    ann, bob = ("Authorization", "ann"), ("Authorization", "bob")
    async with live_edge(runtime, authenticator=NamedUsers()) as edge:
        session_id = (await post(edge.port, "/v1/sessions", {}, ann)).json["session_id"]
        own = f"/v1/sessions/{session_id}"
        turn = await post(edge.port, f"{own}/turns", {"input": "Secret"}, ann, KEY)
        async with exchange(
            edge.port, "GET", f"{own}/events", [ann, ("Last-Event-ID", "0-0")]
        ) as s:
            await s.until("done")
        unknown = _as(await ask(edge.port, "GET", f"/v1/sessions/{'x' * 24}", [bob]))
        cursor = ("Last-Event-ID", "1-2")
        tries = [
            await ask(edge.port, "GET", own, [bob]),
            await ask(edge.port, "GET", f"{own}/events", [bob, cursor]),
            await ask(edge.port, "GET", f"{own}/events?until=follow", [bob]),
            await post(edge.port, f"{own}/turns", {"input": "Mine"}, bob, KEY),
            await post(edge.port, f"{own}/turns/{turn.json['turn_id']}/cancel", {}, bob),
            await post(edge.port, f"{own}/turns/t/tool-calls/c1", {"approve": True}, bob),
        ]
        assert unknown[0] == 404
        assert [_as(answer) for answer in tries] == [unknown] * len(tries)


@pytest.mark.realtime
@pytest.mark.proves("T04")
async def test_a_client_that_stops_reading_frees_its_place_and_nobody_else_notices(
    runtime: ScriptedRuntime,
) -> None:
    words = [emit(*[text("m1", "x" * 50_000)] * 4)] * 30
    runtime.play(*words, emit(completed("m1", "x"), finished()))
    async with live_edge(runtime, stall_seconds=1.0) as edge:
        session_id = await edge.session()
        await edge.turn(session_id)
        async with edge.events(session_id) as frozen, edge.events(session_id) as reading:
            frozen.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await reading.until("done")
            async with asyncio.timeout(PATIENCE_SECONDS):
                while edge.registry.streams:
                    await asyncio.sleep(0)
