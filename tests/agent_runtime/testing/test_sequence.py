"""What makes a stream right, and how a wrong one is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agent_runtime import TurnContext, agent
from agent_runtime.events import (
    CustomEvent,
    ErrorReported,
    Event,
    Heartbeat,
    MessageCompleted,
    MessageStatus,
    Outcome,
    Payload,
    Problem,
    ReasoningDelta,
    StateChange,
    StateDelta,
    TextDelta,
    ToolCallFinished,
    ToolCallProgress,
    TurnFinished,
    TurnLimit,
    TurnOutcome,
    TurnStarted,
)
from agent_runtime.testing import assert_well_formed, crash_after, run_agent, shape
from tests.agent_runtime.testing.shop import shop

Change = Callable[[list[Payload]], None]


def stream(*payloads: Payload) -> list[Event]:
    """Return one attempt with contiguous indexes."""
    return [Event(payload=p, attempt=1, index=i) for i, p in enumerate(payloads, start=1)]


def said(text: str, *, message_id: str = "m1", **more: object) -> MessageCompleted:
    made = MessageCompleted(message_id=message_id, text=text, status=MessageStatus.COMPLETE)
    return replace(made, **more)  # type: ignore[arg-type]


DONE = TurnFinished(outcome=TurnOutcome.COMPLETED)
END = ToolCallFinished(call_id="c1", outcome=Outcome.SUCCEEDED)


@pytest.mark.proves("P-EVT-1", "P-EVT-2", "P-EVT-4")
async def test_a_real_turn_is_well_formed_undisturbed_and_resumed() -> None:
    assert_well_formed(await run_agent(shop, "tea"))
    assert_well_formed(await run_agent(shop, "tea", crash_after(2), crash_after(6)))


def move(source: int, target: int) -> Change:
    return lambda payloads: payloads.insert(target, payloads.pop(source))


def add(place: int, payload: Payload) -> Change:
    return lambda payloads: payloads.insert(place, payload)


def drop(place: int) -> Change:
    def change(payloads: list[Payload]) -> None:
        del payloads[place]

    return change


# Places of the turn: 0 turn_start, 1 delta, 2 say(m1), 3 start(c1), 4 end(c1), 5 start(c2),
# 6 end(c2), 7 state, 8 delta, 9 say(m2), 10 done.
@pytest.mark.parametrize(
    ("change", "reason", "token"),
    [
        (drop(0), "does not begin with its start", "delta(m1)"),
        (add(11, CustomEvent("x", "1")), "follows the end of the turn", "custom(x)"),
        (add(11, DONE), "follows the end of the turn", "done(completed)"),
        (drop(10), "stops before the turn ends", "(end)"),
        (drop(4), "the turn ends before c1 does", "done(completed)"),
        (add(5, END), "c1 ends twice", "end(c1 ok)"),
        (add(1, END), "c1 ends and never started", "end(c1 ok)"),
        (move(4, 3), "c1 ends and never started", "end(c1 ok)"),
        (add(5, ToolCallProgress(call_id="c1", message="")), "progress of c1", "progress(c1)"),
        (move(2, 1), "a delta of m1, which is settled", "delta(m1)"),
        (add(3, TextDelta("m1", "x")), "a delta of m1, which is settled", "delta(m1)"),
        (add(2, TextDelta("m1", "x")), "m1 does not restate its deltas", "say(m1)"),
        (add(2, ReasoningDelta("m1", "x")), "m1 does not restate its deltas", "say(m1)"),
        (add(3, said("One moment.")), "m1 is settled twice", "say(m1)"),
        (drop(9), "the turn ends before m2 is settled", "done(completed)"),
        (add(1, TurnStarted()), "attempt 1 follows attempt 1", "turn_start"),
    ],
)
async def test_a_broken_stream_is_told_and_pointed_at(
    change: Change, reason: str, token: str
) -> None:
    payloads = list((await run_agent(shop, "tea")).payloads)
    change(payloads)
    with pytest.raises(AssertionError) as failure:
        assert_well_formed(stream(*payloads))
    told, line, arrow = str(failure.value).splitlines()
    assert reason in told
    start, length = arrow.index("^"), arrow.count("^")
    assert line[start : start + length] == token


async def test_a_call_that_starts_twice_is_told() -> None:
    payloads = list((await run_agent(shop, "tea")).payloads)
    payloads.insert(5, payloads[3])
    with pytest.raises(AssertionError, match="c1 starts twice"):
        assert_well_formed(stream(*payloads))


@pytest.mark.proves("P-RUN-1")
async def test_indexes_are_contiguous_and_a_heartbeat_repeats_the_last() -> None:
    events = list((await run_agent(shop, "tea")).events)
    events.insert(3, Event(payload=Heartbeat(()), attempt=1, index=3))
    assert_well_formed(events)
    with pytest.raises(AssertionError, match="index 5 where 4 was due"):
        assert_well_formed([*events[:4], *events[5:]])
    events[3] = replace(events[3], index=4)
    with pytest.raises(AssertionError, match="index 4 where 3 was due"):
        assert_well_formed(events)


async def test_attempts_do_not_mix() -> None:
    events = list((await run_agent(shop, "tea", crash_after(3))).events)
    events[4] = replace(events[4], attempt=1)
    with pytest.raises(AssertionError, match="an event of attempt 1 in attempt 2"):
        assert_well_formed(events)


async def test_nothing_follows_a_suspension_but_the_next_attempt() -> None:
    @agent()
    async def asker(ctx: TurnContext) -> None:
        await ctx.ask("?")

    waiting = await run_agent(asker)
    assert_well_formed(waiting)
    late = Event(payload=CustomEvent("x", "1"), attempt=1, index=4)
    with pytest.raises(AssertionError, match="follows the suspension"):
        assert_well_formed([*waiting.events, late])


def test_an_empty_stream_is_none() -> None:
    with pytest.raises(AssertionError, match="the stream is empty"):
        assert_well_formed([])


def test_whole_messages_and_withdrawn_ones_are_well_formed() -> None:
    withdrawn = said("", message_id="m2", status=MessageStatus.DISCARDED)
    assert_well_formed(stream(TurnStarted(), said("x"), TextDelta("m2", "y"), withdrawn, DONE))


def test_a_long_stream_is_shown_round_the_place() -> None:
    deltas = [TextDelta(f"m{i // 40}", "x") for i in range(400)]
    with pytest.raises(AssertionError) as failure:
        assert_well_formed(stream(TurnStarted(), *deltas, END, *deltas))
    _, line, arrow = str(failure.value).splitlines()
    assert line.startswith("... delta(m2)*40 delta(m3)*40")
    assert line.endswith("end(c1 ok) delta(m0)*40 delta(m1)*40 delta(m2)*40 ...")
    assert arrow.index("^") == line.index("end(c1")


def test_every_kind_of_event_has_its_token() -> None:
    events = stream(
        TurnStarted(),
        said("", reasoning="why"),
        said("x", message_id="m2", status=MessageStatus.INCOMPLETE),
        StateDelta((StateChange("k", "1"), StateChange("gone", None))),
        ErrorReported(problem=Problem(reason="ODD")),
        CustomEvent("acme.x", "1"),
        TurnFinished(outcome=TurnOutcome.LIMIT_REACHED, limit=TurnLimit.TOKENS),
    )
    assert shape(events) == (
        "turn_start reason(m1) say(m2 incomplete) state(k -gone) notice(ODD) custom(acme.x) "
        "done(limit tokens)"
    )


def test_a_message_left_open_is_told_once_for_each_attempt() -> None:
    deltas = TextDelta("m1", "x"), TextDelta("m1", "y"), ReasoningDelta("m2", "z")
    again = Event(payload=TurnStarted(), attempt=2, index=1)
    events = [*stream(TurnStarted(), *deltas), again, *stream(*deltas)]
    assert shape(events) == (
        "turn_start partial(m1) partial(m2) turn_start(2) partial(m1) partial(m2)"
    )


async def test_the_shape_of_a_failure_names_its_reason() -> None:
    @agent()
    async def broken(ctx: TurnContext) -> None:
        raise KeyError

    assert shape(await run_agent(broken)) == "turn_start error(AGENT_ERROR)"
