"""Running an agent in process: the edge's part, its faults, and what a transcript tells."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agent_runtime import ToolContext, ToolFailed, ToolOutcomeUnknown, TurnContext, agent, tool
from agent_runtime.events import CheckpointMode, Outcome, SuspendReason, TurnOutcome
from agent_runtime.testing import (
    DENIED,
    FAILED,
    AgentStuck,
    cancel_after,
    crash_after,
    drain_after,
    hold,
    run_agent,
    shape,
)
from tests.agent_runtime.testing.shop import charge, pick, price, ship, shop
from tests.support.virtual_loop import run_virtual

WHOLE = (
    "turn_start say(m1) tool(c1 price ok) tool(c2 charge ok) state(last) say(m2) done(completed)"
)


async def test_a_turn_runs_to_its_end() -> None:
    run = await run_agent(shop, "tea")
    assert shape(run) == WHOLE
    assert run.outcome is TurnOutcome.COMPLETED
    assert run.text == "One moment.\nreceipt for 500"
    assert run.state == {"last": "tea"}
    assert [(call.tool, call.arguments, call.result) for call in run.calls] == [
        ("price", {"item": "tea"}, 500),
        ("charge", {"cents": 500}, "receipt for 500"),
    ]
    assert [execution.ended for execution in run.executions] == [True, True]


async def test_a_fake_replaces_the_body_and_not_the_promise() -> None:
    run = await run_agent(shop, "tea", tools={"price": lambda item: 7})
    assert run.text.endswith("receipt for 7")
    assert run.calls[0].outcome is Outcome.SUCCEEDED


async def test_a_fake_gets_the_context_that_the_body_asks_for() -> None:
    @tool()
    async def send(text: str, call: ToolContext) -> str:
        raise AssertionError("is replaced")

    @agent(tools=[send])
    async def sender(ctx: TurnContext) -> None:
        await ctx.say(await ctx.call_tool(send, {"text": "x"}))

    async def fake(text: str, call: ToolContext) -> str:
        return f"{text} {call.idempotency_key}"

    assert (await run_agent(sender, tools={"send": fake})).text == "x s/t1/c1"


async def test_a_fake_of_no_tool_is_refused() -> None:
    with pytest.raises(ValueError, match="has no tool refund"):
        await run_agent(shop, tools={"refund": lambda: None})


async def test_the_next_turn_knows_the_last_one() -> None:
    @agent()
    async def clerk(ctx: TurnContext) -> None:
        await ctx.say(f"{ctx.turn.turn_id} {dict(ctx.state)} {len(ctx.history)}")

    first = await run_agent(shop, "tea")
    second = await run_agent(clerk, history=first.journal)
    assert second.text == "t2 {'last': 'tea'} 5"
    assert second.state == {"last": "tea"}


async def test_in_suspend_mode_every_checkpoint_ends_its_attempt() -> None:
    run = await run_agent(shop, "tea", mode=CheckpointMode.SUSPEND)
    assert [len(attempt) for attempt in run.attempts] == [5, 4, 6]
    assert shape(run) == (
        "turn_start say(m1) tool(c1 price ok) suspended(checkpoint c1) "
        "turn_start(2) tool(c2 charge ok) suspended(checkpoint c2) "
        "turn_start(3) state(last) say(m2) done(completed)"
    )


async def test_a_held_gate_suspends_the_attempt_and_the_next_one_runs_the_tool() -> None:
    run = await run_agent(shop, "tea", hold(), limit_seconds=5)
    assert "suspended(checkpoint c1) turn_start(2)" in shape(run)
    assert len(run.executions) == 2
    assert run.outcome is TurnOutcome.COMPLETED


async def test_a_crash_in_an_unsafe_tool_leaves_its_outcome_unknown() -> None:
    @agent(tools=[charge])
    async def careful(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(charge, {"cents": 1})
        except ToolOutcomeUnknown:
            await ctx.say("Please check.")

    run = await run_agent(careful, "", crash_after(2))
    assert shape(run) == (
        "turn_start tool(c1 charge unknown OUTCOME_UNKNOWN) turn_start(2) say(m1) done(completed)"
    )
    assert len(run.executions) == 1


async def test_a_crash_at_the_gate_lets_the_next_attempt_run_the_tool() -> None:
    @agent(tools=[charge])
    async def clerk(ctx: TurnContext) -> None:
        await ctx.say(await ctx.call_tool(charge, {"cents": 1}))

    run = await run_agent(clerk, "", crash_after(2, at_gate=True))
    assert shape(run) == "turn_start tool(c1 charge ok) turn_start(2) say(m1) done(completed)"
    assert [execution.tool for execution in run.executions] == ["charge"]


async def test_several_crashes_are_several_attempts() -> None:
    run = await run_agent(shop, "tea", crash_after(2), crash_after(5))
    assert [len(attempt) for attempt in run.attempts] == [2, 3, 9]
    assert shape(run).startswith("turn_start partial(m1) turn_start(2) say(m1) turn_start(3)")
    assert run.text == "One moment.\nreceipt for 500"


async def test_a_cancelled_turn_ends_and_what_ran_is_unknown() -> None:
    @agent(tools=[charge])
    async def clerk(ctx: TurnContext) -> None:
        await ctx.call_tool(charge, {"cents": 1})

    async def for_ever(cents: int) -> None:
        await asyncio.Event().wait()

    running = await run_agent(clerk, "", cancel_after(2), tools={"charge": for_ever})
    assert shape(running) == "turn_start tool(c1 charge unknown CANCELLED) done(cancelled)"
    held = await run_agent(clerk, "", cancel_after(2, at_gate=True))
    assert shape(held) == "turn_start tool(c1 charge not_executed CANCELLED) done(cancelled)"
    assert held.executions == ()


async def test_a_drained_turn_goes_on_in_the_next_attempt() -> None:
    run = await run_agent(shop, "tea", drain_after(4, at_gate=True))
    assert "suspended(draining c1) turn_start(2)" in shape(run)
    assert run.text == "One moment.\nreceipt for 500"


@agent(tools=[ship, pick])
async def asker(ctx: TurnContext) -> None:
    """Ask, let pick, and ship."""
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: ctx.ask("Colour?"),
        lambda: ctx.call_tool(pick, {"prompt": "Size?"}),
        lambda: ctx.call_tool(ship, {"item": "tea"}),
    ]
    for begin in calls:
        try:
            await ctx.say(f"{await begin()}")
        except ToolFailed as failure:
            await ctx.say(f"{failure.outcome} {failure.reason}")


async def test_answers_reach_questions_browser_tools_and_approvals() -> None:
    run = await run_agent(asker, answers={"c1": "red", "c2": "large", "c3": True})
    assert run.text == "red\nlarge\nTrue"
    assert [execution.tool for execution in run.executions] == ["ship"]


async def test_an_answer_may_be_a_refusal_or_a_failure() -> None:
    run = await run_agent(asker, answers={"c1": DENIED, "c2": FAILED, "c3": False})
    assert run.text == "not_executed DENIED\nfailed CLIENT_ERROR\nnot_executed DENIED"
    assert run.executions == ()


async def test_answers_may_come_from_a_function() -> None:
    run = await run_agent(asker, answers=lambda call: call.tool == "ship")
    assert run.text == "False\nFalse\nTrue"


async def test_a_call_that_nobody_answers_leaves_the_turn_waiting() -> None:
    run = await run_agent(asker, answers={"c1": "red"})
    assert run.outcome is None
    assert run.waiting is not None
    assert (run.waiting.reason, run.waiting.pending) == (SuspendReason.CLIENT_TOOL, ("c2",))
    assert run.calls[1].outcome is None


async def test_an_answer_outlives_a_crash_before_it_is_committed() -> None:
    run = await run_agent(asker, "", crash_after(4), answers={"c1": "red", "c2": "l", "c3": True})
    assert [len(attempt) for attempt in run.attempts][:3] == [3, 1, 6]
    assert run.text == "red\nl\nTrue"


async def test_a_permission_is_good_for_one_attempt() -> None:
    answers = {"c1": "red", "c2": "l", "c3": True}
    whole = await run_agent(asker, answers=answers)
    granted = len(whole.events) - len(whole.attempts[-1]) + 1
    run = await run_agent(asker, "", crash_after(granted), answers=answers)
    assert run.text == "red\nl\nunknown OUTCOME_UNKNOWN"
    assert len(run.executions) <= 1


async def test_a_cancel_of_a_waiting_turn_leaves_it_waiting() -> None:
    run = await run_agent(asker, "", cancel_after(3), answers={"c1": "red"})
    assert shape(run) == "turn_start tool(c1 ask ...) suspended(input_required c1)"


async def test_a_stuck_agent_is_told_with_how_far_it_got() -> None:
    @agent()
    async def sleeper(ctx: TurnContext) -> None:
        await ctx.say("wait")
        await asyncio.Event().wait()

    before = asyncio.all_tasks()
    with pytest.raises(AgentStuck, match=r"turn_start delta\(m1\) say\(m1\) \(end\)\n +\^"):
        await run_agent(sleeper, limit_seconds=0.05)
    assert asyncio.all_tasks() == before


async def test_a_timeout_of_an_answer_is_not_a_stuck_agent() -> None:
    def answer(call: object) -> object:
        raise TimeoutError("of the test's own")

    with pytest.raises(TimeoutError, match="of the test's own"):
        await run_agent(asker, answers=answer)


async def test_events_carry_the_injected_time() -> None:
    run = await run_agent(shop, "tea", wall_clock=lambda: 12.5)
    assert {event.emitted_at for event in run.events} == {12.5}
    run = await run_agent(shop, "tea")
    assert {event.emitted_at for event in run.events} == {0.0}


def test_time_is_that_of_the_loop() -> None:
    @agent()
    async def patient(ctx: TurnContext) -> None:
        await asyncio.sleep(3599)
        await ctx.say("at last")

    run = run_virtual(run_agent(patient, limit_seconds=3600))
    assert run.text == "at last"


async def test_the_model_calls_of_a_turn_are_bounded() -> None:
    @agent()
    async def thinker(ctx: TurnContext) -> None:
        while True:
            ctx.begin_model_call()
            await asyncio.sleep(0)

    run = await run_agent(thinker, max_model_calls=3)
    assert shape(run) == "turn_start done(limit model_calls)"


def test_a_fault_before_the_first_event_is_refused() -> None:
    with pytest.raises(ValueError, match="not after 0"):
        crash_after(0)


def test_a_replaced_tool_is_the_same_object_for_its_agent() -> None:
    assert shop.tools["price"] is price
