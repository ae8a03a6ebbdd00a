"""Losing an agent after each of its events, and how a nondeterministic one is found."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from agent_runtime import ToolOutcomeUnknown, TurnContext, agent, tool
from agent_runtime.events import CheckpointMode
from agent_runtime.testing import assert_replayable
from tests.agent_runtime.testing.shop import charge, price, shop


@pytest.mark.proves("P-RUN-6")
async def test_a_deterministic_agent_survives_a_crash_anywhere() -> None:
    await assert_replayable(shop, "tea")
    await assert_replayable(shop, "tea", mode=CheckpointMode.SUSPEND)


async def test_parallel_calls_survive_a_crash_anywhere() -> None:
    @agent(tools=[charge, price])
    async def both(ctx: TurnContext) -> None:
        await asyncio.gather(
            ctx.call_tool(charge, {"cents": 1}), ctx.call_tool(price, {"item": "tea"})
        )
        await ctx.say(f"{ctx.random.random()}")

    await assert_replayable(both)


async def test_an_agent_that_leaves_its_words_to_chance_is_found() -> None:
    numbers = itertools.count()

    @agent()
    async def chatty(ctx: TurnContext) -> None:
        await ctx.say(f"number {next(numbers)}")

    with pytest.raises(AssertionError) as failure:
        await assert_replayable(chatty)
    assert str(failure.value).splitlines() == [
        "two undisturbed runs differ",
        '- m1 complete: "number 0"',
        '+ m1 complete: "number 1"',
        "  completed",
    ]


async def test_an_agent_that_replays_other_words_is_found() -> None:
    @agent(tools=[price])
    async def moody(ctx: TurnContext) -> None:
        mood = "again" if ctx.turn.attempt > 1 else "first"
        await ctx.call_tool(price, {"item": "tea"})
        await ctx.say(mood)

    with pytest.raises(AssertionError) as failure:
        await assert_replayable(moody)
    assert str(failure.value).splitlines() == [
        "the resumed turn comes to something else, on crash after event 1:",
        "turn_start start(c1 price) end(c1 ok) delta(m1) ...",
        "^^^^^^^^^^",
        '- m1 complete: "first"',
        '+ m1 complete: "again"',
        '  c1 price({"item":"tea"}) succeeded: 500',
        "  completed",
    ]


async def test_an_agent_that_replays_another_call_is_found() -> None:
    @agent(tools=[price])
    async def moody(ctx: TurnContext) -> None:
        await ctx.say("a")
        await ctx.call_tool(price, {"item": f"attempt {min(ctx.turn.attempt, 2)}"})

    @agent(tools=[price])
    async def late(ctx: TurnContext) -> None:
        again = ctx.turn.attempt > 1 and ctx.history == () and len(seen) > 1
        seen.append(ctx.turn.attempt)
        await ctx.call_tool(price, {"item": "coffee" if again and crashed() else "tea"})

    seen: list[int] = []

    def crashed() -> bool:
        return seen.count(2) == 2  # at the second crash, which leaves the call in the journal

    with pytest.raises(AssertionError, match="comes to something else, on crash after event 1:"):
        await assert_replayable(moody)
    with pytest.raises(AssertionError, match="another call than the journal holds, on crash after"):
        await assert_replayable(late)


async def test_an_agent_that_repeats_a_call_of_unknown_outcome_is_found() -> None:
    @agent(tools=[charge])
    async def pushy(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(charge, {"cents": 500})
        except ToolOutcomeUnknown:
            await ctx.call_tool(charge, {"cents": 500})

    with pytest.raises(AssertionError) as failure:
        await assert_replayable(pushy)
    assert str(failure.value).splitlines() == [
        'the unsafe tool charge ran 2 times with {"cents":500}, on crash after event 2:',
        "turn_start start(c1 charge) end(c1 ok) done(completed)",
        "           ^^^^^^^^^^^^^^^^",
        "turn_start tool(c1 charge unknown OUTCOME_UNKNOWN) turn_start(2) "
        "tool(c2 charge ok) done(completed)",
    ]


async def test_a_call_that_a_person_allowed_counts_as_unsafe() -> None:
    @tool(replay_safety="read_only", approval=True)
    async def peek() -> int:
        """Look, if allowed."""
        return 1

    @agent(tools=[peek])
    async def pushy(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(peek, {})
        except ToolOutcomeUnknown:
            await ctx.call_tool(peek, {})

    with pytest.raises(AssertionError, match=r"the unsafe tool peek ran 2 times with \{\}"):
        await assert_replayable(pushy, answers=lambda call: True)


async def test_a_tool_that_answers_otherwise_each_time_is_told_by_its_call() -> None:
    answers = itertools.count()

    @tool(replay_safety="read_only")
    async def now() -> int:
        """Tell the time."""
        return next(answers)

    @agent(tools=[now])
    async def clock(ctx: TurnContext) -> None:
        await ctx.call_tool(now, {})

    with pytest.raises(AssertionError, match=r"\+ c1 now\(\{\}\) succeeded: 1"):
        await assert_replayable(clock)
    await assert_replayable(clock, tools={"now": lambda: 12})
