"""The calls of AG-UI's clients, byte by byte: whose threads they reach, what they refuse, how their streams end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import h11
import pytest
import pytest_asyncio
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core.control import CaughtUp, Control, Reconnect
from edge.core.errors import Draining, JournalUnavailable
from edge.sessions.tail import Shown
from edge.web.guard import MAX_CHAT_BYTES
from tests.edge.web.scripted_registry import ScriptedRegistry, ScriptedViewer
from tests.edge.wire.turns import Log, start
from tests.support.http_client import Answer, ask, exchange, post
from tests.support.live_edge import LiveEdge, NamedUsers, live_edge, served
from tests.support.scripted_runtime import (
    ScriptedRuntime,
    completed,
    emit,
    finished,
    hang,
    suspended,
    text,
    tool_finished,
    tool_started,
    wait_for_ack,
)

THREAD = "a-thread-of-a-client"
AGENT = "/v1/ag-ui/agent/default"
HELLO = [text("m1", "Hel"), completed("m1", "Hello"), finished()]

Body = dict[str, Any]


@pytest_asyncio.fixture
async def runtime() -> ScriptedRuntime:
    return ScriptedRuntime()


@pytest_asyncio.fixture
async def edge(runtime: ScriptedRuntime) -> AsyncIterator[LiveEdge]:
    async with live_edge(runtime, authenticator=NamedUsers()) as running:
        yield running


def body(words: str = "Hi", run_id: str = "run-1", **more: Any) -> Body:
    said = {"id": f"u-{words}", "role": "user", "content": words}
    return {
        "threadId": THREAD,
        "runId": run_id,
        "messages": [said],
        "protocolVersion": "1.0",
    } | more


async def call(edge: LiveEdge, name: str, value: object, user: str = "ada") -> Answer:
    return await post(edge.port, f"{AGENT}/{name}", value, ("Authorization", user))


def read(stream: bytes) -> list[Body]:
    blocks = stream.decode("ascii").split("\n\n")
    data = [line[6:] for block in blocks for line in block.split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in data]


def kinds(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    return [event["type"] for event in read(answer.body)]


@pytest.mark.proves("P-AGUI-1", "P-AGUI-2", "P-AGUI-12", "P-SSE-3")
async def test_a_run_is_the_stream_of_its_turn(edge: LiveEdge, runtime: ScriptedRuntime) -> None:
    runtime.play(emit(*HELLO))
    answer = await call(edge, "run", body())
    assert kinds(answer) == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    assert runtime.requests[0].turn.session_id == THREAD


@pytest.mark.proves("P-AGUI-1", "P-AGUI-3")
async def test_a_run_that_is_posted_twice_runs_once_and_tells_the_thread_anew(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(*HELLO))
    first = await call(edge, "run", body())
    again = await call(edge, "run", body())
    assert kinds(again)[1:3] == ["MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]
    assert read(again.body)[3:] == read(first.body)[1:]
    assert len(runtime.requests) == 1
    other = await call(edge, "run", body("Other"))
    assert (other.status, other.json["type"]) == (
        422,
        "urn:unbroken:problem:idempotency-key-reused",
    )


@pytest.mark.proves("P-AGUI-1", "P-HTTP-3", "S81")
async def test_a_thread_is_its_users_alone(edge: LiveEdge, runtime: ScriptedRuntime) -> None:
    runtime.play(emit(*HELLO))
    await call(edge, "run", body())
    assert (await call(edge, "run", body(run_id="run-2"), user="eve")).status == 404
    assert (await call(edge, f"stop/{THREAD}", {}, user="eve")).status == 404
    foreign = await call(edge, "connect", body(), user="eve")
    unknown = await call(edge, "connect", body(threadId="a-thread-of-nobody"), user="eve")
    assert foreign.body == unknown.body
    assert kinds(foreign) == []
    assert "RUN_FINISHED" in kinds(await call(edge, "connect", body()))


@pytest.mark.parametrize(
    "thread", ["short", "x" * 65, "white space in it", "__reserved_by_stores__"]
)
async def test_a_thread_of_another_form_does_not_exist(edge: LiveEdge, thread: str) -> None:
    for name in ("run", "connect"):
        assert (await call(edge, name, body(threadId=thread))).status == 404


@pytest.mark.parametrize("path", [f"{AGENT}/run", f"{AGENT}/connect", "/v1/ai-sdk/v7"])
async def test_a_body_that_any_page_could_send_unasked_is_refused(path: str) -> None:
    registry = ScriptedRegistry()
    async with served(registry) as port:
        lines = [("Content-Type", "text/plain")]
        answer = await ask(port, "POST", path, lines, json.dumps(body()).encode())
    assert (answer.status, answer.code) == (415, "unsupported-media-type")
    assert registry.calls == []


async def test_a_run_that_names_another_agent_is_refused(edge: LiveEdge) -> None:
    answer = await post(edge.port, "/v1/ag-ui/agent/nobody/run", body())
    assert (answer.status, answer.json["type"]) == (422, "urn:unbroken:problem:unknown-agent")


async def test_a_long_conversation_is_taken_and_an_endless_one_is_not(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(*HELLO))
    old = {"id": "old", "role": "assistant", "content": "x" * (MAX_CHAT_BYTES // 2)}
    new = {"id": "u-1", "role": "user", "content": "Hi"}
    assert "RUN_FINISHED" in kinds(await call(edge, "run", body(messages=[old, new])))
    assert (await call(edge, "run", body(messages=[old, old, new]))).status == 413


@pytest.mark.proves("P-AGUI-10")
async def test_all_calls_that_wait_are_answered_at_once_or_none(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    asks = suspended(pb.SUSPEND_REASON_INPUT_REQUIRED, "c1", "c2")
    runtime.play(emit(tool_started("c1"), tool_started("c2")), wait_for_ack(), emit(asks))
    runtime.play(emit(tool_finished("c1"), tool_finished("c2"), finished()))
    waiting = read((await call(edge, "run", body())).body)[-1]["outcome"]["interrupts"]
    answers = [
        {"interruptId": i["id"], "status": "resolved", "payload": {"approved": True}}
        for i in waiting
    ]
    nobody = {**answers[0], "interruptId": "t.c"}
    for wrong in ([answers[0]], [*answers, nobody], [nobody]):
        assert (await call(edge, "run", body(run_id="run-2", resume=wrong))).status == 404
    unclear = [answers[0], {**answers[1], "payload": "yes"}]
    assert (await call(edge, "run", body(run_id="run-2", resume=unclear))).status == 422
    resumed = await call(edge, "run", body(run_id="run-2", resume=answers))
    wanted = ["RUN_STARTED", "TOOL_CALL_RESULT", "TOOL_CALL_RESULT", "RUN_FINISHED"]
    assert kinds(resumed) == wanted
    # The same answers once more change nothing, and other ones come too late.
    again = await call(edge, "run", body(run_id="run-2", resume=answers))
    assert read(again.body) == read(resumed.body)
    denied = [{"interruptId": i["id"], "status": "cancelled"} for i in waiting]
    assert (await call(edge, "run", body(run_id="run-3", resume=denied))).status == 409


@pytest.mark.proves("P-AGUI-10")
async def test_an_answer_that_nobody_waits_for_is_refused(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(*HELLO))
    entry = {"interruptId": "t.c", "status": "cancelled"}
    assert (await call(edge, "run", body(resume=[entry]))).status == 404
    await call(edge, "run", body())
    assert (await call(edge, "run", body(resume=[entry]))).status == 404


async def test_a_call_that_waits_without_having_begun_can_be_answered(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(suspended(pb.SUSPEND_REASON_INPUT_REQUIRED, "c1")))
    runtime.play(emit(finished()))
    [asked] = read((await call(edge, "run", body())).body)[-1]["outcome"]["interrupts"]
    answer = {"interruptId": asked["id"], "status": "resolved", "payload": {"approved": True}}
    resumed = await call(edge, "run", body(run_id="run-2", resume=[answer]))
    assert kinds(resumed) == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.proves("P-AGUI-11")
@pytest.mark.parametrize(("answer", "stopped"), [("accepted", True), ("done", False)])
async def test_a_stop_says_whether_there_was_still_something_to_stop(
    answer: str, stopped: bool
) -> None:
    async with served(ScriptedRegistry(cancelled=answer)) as port:
        told = await ask(port, "POST", f"{AGENT}/stop/{THREAD}")
    assert told.json == {"stopped": stopped}


@pytest.mark.proves("P-AGUI-11")
async def test_a_stop_needs_no_body_and_a_thread_without_a_turn_is_at_rest(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(*HELLO))
    user = (("Authorization", "ada"),)
    await call(edge, "run", body())
    answer = await ask(edge.port, "POST", f"{AGENT}/stop/{THREAD}", user)
    assert (answer.status, answer.json) == (200, {"stopped": False})


@pytest.mark.proves("P-AGUI-12", "S57", "S79")
async def test_an_edge_that_drains_mid_run_resets_the_connection(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(text("m1", "Hel")), hang())
    async with exchange(
        edge.port,
        "POST",
        f"{AGENT}/run",
        [("Content-Type", "application/json"), ("Authorization", "ada")],
        json.dumps(body()).encode(),
    ) as opened:
        got = b""
        while b"CONTENT" not in got:
            got += await opened.data()
        await edge.registry.drain(5.0)
        with pytest.raises(h11.RemoteProtocolError):
            await opened.body()
    assert (await call(edge, "run", body(run_id="run-2"))).status == 503


def shown(log: Log) -> list[Shown]:
    return [Shown(event, b"") for event in log.events]


AWAY = Reconnect("rolling", 50)
TURN = start().message("m1", "Hello").add("done", outcome="completed")


@pytest.mark.proves("P-AGUI-12")
@pytest.mark.parametrize(
    ("batches", "failure"),
    [
        ([shown(TURN), [AWAY]], None),
        ([shown(TURN)], None),
        ([shown(TURN)], JournalUnavailable()),
        ([[*shown(start()), CaughtUp()], [AWAY]], None),
    ],
    ids=["sent away", "fenced", "no journal", "mid run"],
)
async def test_a_replay_that_is_cut_between_two_runs_does_not_end_tidily(
    batches: list[Sequence[Shown | Control]], failure: BaseException | None
) -> None:
    viewer = ScriptedViewer(batches=batches, failure=failure)
    registry = ScriptedRegistry(viewer=viewer)
    lines = [("Content-Type", "application/json")]
    posted = json.dumps(body()).encode()
    async with (
        served(registry) as port,
        exchange(port, "POST", f"{AGENT}/connect", lines, posted) as opened,
    ):
        with pytest.raises(h11.RemoteProtocolError):
            await opened.body()


@pytest.mark.parametrize("failure", [Draining(), JournalUnavailable()])
async def test_a_connect_that_cannot_be_served_now_says_when(failure: Exception) -> None:
    async with served(ScriptedRegistry(failure=failure)) as port:
        answer = await post(port, f"{AGENT}/connect", body())
        assert answer.status == 503
        assert "retry-after" in answer.headers
