"""What the runtime can do to a turn: crash, stall at a gate, suspend, forget, break the protocol."""

from __future__ import annotations

import json

import pytest

from edge.core.event import MESSAGE
from tests.support.house import UID, Client, edge, log_events, memory_journal, request
from tests.support.runtime_double import Agent, Attempt, RuntimeDouble, Suspend, crash
from tests.support.virtual_loop import elapse, run_virtual


async def run_turn(runtime: RuntimeDouble) -> Client:
    """Run one turn to its end and return what a client saw."""
    journal = memory_journal()
    registry = edge(journal, runtime)
    session_id = await registry.create_session(UID)
    await registry.start_turn(UID, session_id, request())
    client = Client()
    await client.watch_to_end(registry, session_id=session_id)
    assert client.view == await log_events(journal, session_id)
    await registry.close()
    return client


def last(client: Client) -> dict[str, object]:
    return dict(json.loads(client.view[-1].data))


@pytest.mark.proves("P-RUN-2", "P-EVT-3", "S32", "S39", "P-RUN-3")
def test_a_crashed_attempt_is_continued_and_its_unfinished_message_withdrawn() -> None:
    async def agent(attempt: Attempt) -> None:
        if attempt.call.ref.attempt == 1:
            attempt.text("m1", "half a ")
            await elapse(1.0)
            raise crash()
        await attempt.say("m1", ["whole"])

    runtime = RuntimeDouble(agent)
    client = run_virtual(run_turn(runtime))
    assert client.types == [
        *["turn_start", "token", "turn_start"],
        *["token", "message", "done"],
    ]
    assert [call.ref.attempt for call in runtime.calls] == [1, 2]


@pytest.mark.proves("T27", "S59")
def test_a_stream_that_ends_tidily_without_a_terminal_event_is_a_crash_like_any_other() -> None:
    async def agent(attempt: Attempt) -> None:
        if attempt.call.ref.attempt == 1:
            attempt.end()
            await elapse(60.0)
        await attempt.say("m1", ["whole"])

    client = run_virtual(run_turn(RuntimeDouble(agent)))
    assert client.types[-1] == "done"


@pytest.mark.proves("P-RUN-10", "T26", "S46")
def test_attempts_that_bring_nothing_end_the_turn_with_the_reason_of_the_last() -> None:
    async def agent(attempt: Attempt) -> None:
        raise crash("runtime_overloaded")

    runtime = RuntimeDouble(agent)
    client = run_virtual(run_turn(runtime))
    assert last(client)["code"] == "runtime_overloaded"
    assert last(client)["retryable"] is True
    assert len(runtime.calls) == 10


def test_interruptions_cost_nothing_while_the_turn_makes_progress() -> None:
    async def agent(attempt: Attempt) -> None:
        done = sum(event.type == MESSAGE for event in attempt.so_far)
        if done == 30:
            return
        attempt.message(f"m{done}", "one more")
        await elapse(0.1)
        raise crash()

    runtime = RuntimeDouble(agent)
    client = run_virtual(run_turn(runtime))
    assert client.types[-1] == "done"
    assert len(runtime.calls) == 31


def test_a_failure_that_no_retry_can_mend_ends_the_turn_at_once() -> None:
    async def agent(attempt: Attempt) -> None:
        raise crash("runtime_incompatible", retryable=False)

    runtime = RuntimeDouble(agent)
    client = run_virtual(run_turn(runtime))
    assert last(client) == {
        "turn_id": runtime.calls[0].ref.turn_id,
        "code": "runtime_incompatible",
        "retryable": False,
    }
    assert len(runtime.calls) == 1


@pytest.mark.proves("P-RUN-5")
def test_an_acknowledgement_that_misses_leads_to_a_resume_in_which_the_tool_runs_once() -> None:
    async def agent(attempt: Attempt) -> None:
        attempt.runtime.here = attempt.call.ref.attempt > 1
        await attempt.tool("c1", safety="read_only")

    runtime = RuntimeDouble(agent)
    client = run_virtual(run_turn(runtime))
    assert runtime.ledger == ["c1"]
    assert client.types == ["turn_start", "tool_start", "turn_start", "tool_end", "done"]


def test_a_turn_suspended_at_its_checkpoint_is_resumed_with_leave_to_run_the_tool() -> None:
    async def agent(attempt: Attempt) -> None:
        if attempt.call.ref.attempt == 1:
            body = {"call_id": "c1", "name": "t", "arguments_json": "{}", "replay_safety": "unsafe"}
            rest = {"executor": "runtime", "checkpoint_required": True}
            attempt.emit("tool_start", body | rest, subject="c1", gated=False)
            raise Suspend("checkpoint", ["c1"])
        await attempt.tool("c1")

    runtime = RuntimeDouble(agent)
    client = run_virtual(run_turn(runtime))
    assert runtime.ledger == ["c1"]
    assert runtime.calls[1].resolutions == (("c1", '{"execute":true}'),)
    assert '"outcome":"succeeded"' in next(e.data for e in client.view if e.type == "tool_end")


@pytest.mark.proves("P-RUN-7")
def test_leave_to_run_is_good_for_one_attempt_only() -> None:
    async def agent(attempt: Attempt) -> None:
        match attempt.call.ref.attempt:
            case 1:
                body = {"call_id": "c1", "name": "t", "arguments_json": "{}"}
                rest = {
                    "replay_safety": "unsafe",
                    "executor": "runtime",
                    "checkpoint_required": True,
                }
                attempt.emit("tool_start", body | rest, subject="c1")
                raise Suspend("checkpoint", ["c1"])
            case 2:
                attempt.runtime.ledger.append("c1")  # it ran, and nobody heard of it
                raise crash()
            case _:
                await attempt.tool("c1")

    runtime = RuntimeDouble(agent)
    client = run_virtual(run_turn(runtime))
    assert runtime.ledger == ["c1"]
    assert '"outcome":"unknown"' in next(e.data for e in client.view if e.type == "tool_end")


def test_a_draining_runtime_costs_the_turn_nothing() -> None:
    async def agent(attempt: Attempt) -> None:
        await attempt.tool("c1", 0.5)
        if attempt.call.ref.attempt == 1:
            raise Suspend("draining", [])
        await attempt.say("m1", ["whole"])

    runtime = RuntimeDouble(agent)
    client = run_virtual(run_turn(runtime))
    assert runtime.ledger == ["c1"]
    assert client.types[-1] == "done"


def _tool_end_without_start(attempt: Attempt) -> None:
    attempt.emit("tool_end", {"call_id": "c9", "outcome": "succeeded"}, subject="c9")


def _oversize(attempt: Attempt) -> None:
    attempt.message("m1", "x" * 600_000)


@pytest.mark.proves("P-EVT-1", "P-EVT-4", "P-EVT-5", "P-EVT-8", "S78")
@pytest.mark.parametrize(
    ("misdeed", "code"),
    [(_tool_end_without_start, "runtime_protocol_error"), (_oversize, "event_too_large")],
)
def test_a_runtime_that_breaks_the_protocol_ends_its_turn_and_nothing_is_left_open(
    misdeed: Agent, code: str
) -> None:
    async def agent(attempt: Attempt) -> None:
        attempt.text("m0", "begun")
        await attempt.tool("c1", 0.1)
        misdeed(attempt)
        await elapse(60.0)

    client = run_virtual(run_turn(RuntimeDouble(agent)))
    assert last(client)["code"] == code
    assert client.types.count("message") == 1  # settled as incomplete
    assert client.types.count("tool_start") == client.types.count("tool_end") == 1
    assert client.types.count("error") == 1


def test_a_terminal_event_with_open_ends_has_them_closed_first() -> None:
    async def agent(attempt: Attempt) -> None:
        attempt.text("m1", "never settled")

    client = run_virtual(run_turn(RuntimeDouble(agent)))
    assert client.types == ["turn_start", "token", "message", "done"]
    assert '"status":"incomplete"' in client.view[2].data
