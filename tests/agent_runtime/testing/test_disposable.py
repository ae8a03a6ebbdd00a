"""Stopping an agent after each of its events, and what a bad one leaves behind."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress

import pytest

from agent_runtime import TurnContext, agent, tool
from agent_runtime.testing import assert_disposable, assert_well_formed
from agent_runtime.testing import disposal as room
from agent_runtime.testing.transcript import Transcript
from tests.agent_runtime.testing.shop import shop


@tool()
async def work() -> None:
    """Do something."""
    await asyncio.sleep(0)


async def test_a_good_agent_leaves_nothing_wherever_it_is_stopped() -> None:
    torn_down = 0

    @agent(tools=[work])
    async def tidy(ctx: TurnContext) -> None:
        nonlocal torn_down
        side = asyncio.create_task(asyncio.Event().wait())
        try:
            await ctx.say("a")
            await asyncio.gather(ctx.call_tool(work, {}), ctx.call_tool(work, {}))
            await ctx.say("b")
        finally:
            side.cancel()
            torn_down += 1

    await assert_disposable(tidy, grace_seconds=10)
    await assert_disposable(shop, "tea", grace_seconds=10)
    assert torn_down > 20


async def test_a_forgotten_task_is_found() -> None:
    forgotten: list[asyncio.Task[object]] = []

    @agent()
    async def forgetful(ctx: TurnContext) -> None:
        forgotten.append(asyncio.create_task(asyncio.Event().wait(), name="poll prices"))
        await ctx.say("a")

    with pytest.raises(AssertionError) as failure:
        await assert_disposable(forgetful, after=2, grace_seconds=0.01)
    assert str(failure.value).splitlines() == [
        "still running 0.01 s after cancel after event 2:",
        "turn_start delta(m1) say(m1) done(completed)",
        "           ^^^^^^^^^",
        "task 'poll prices' (Event.wait)",
    ]
    for task in forgotten:
        task.cancel()


async def test_an_agent_that_ignores_its_cancellation_is_found() -> None:
    released = asyncio.Event()

    @agent(tools=[work])
    async def stubborn(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(work, {})
        except asyncio.CancelledError:
            while not released.is_set():
                with suppress(asyncio.CancelledError):
                    await released.wait()

    try:
        with pytest.raises(AssertionError, match="task 'agent stubborn'"):
            await assert_disposable(stubborn, after=2, grace_seconds=0.01)
    finally:
        released.set()


async def test_an_agent_that_must_be_cancelled_twice_is_found() -> None:
    @agent(tools=[work])
    async def slow(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(work, {})
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    with pytest.raises(AssertionError, match=r"s to stop, where 0\.01 s are allowed, on cancel"):
        await assert_disposable(slow, after=2, grace_seconds=0.01)


async def test_a_tool_that_ignores_its_cancellation_is_found() -> None:
    released = asyncio.Event()
    entered = 0

    async def stubborn() -> None:
        nonlocal entered
        entered += 1
        if entered == 1:  # the undisturbed run
            return
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()

    @agent(tools=[work])
    async def caller(ctx: TurnContext) -> None:
        await ctx.call_tool(work, {})

    try:
        with pytest.raises(AssertionError, match=r"tool work \(c1\)"):
            await assert_disposable(caller, after=2, grace_seconds=0.01, tools={"work": stubborn})
    finally:
        released.set()


async def test_a_tool_in_a_thread_that_cannot_be_stopped_is_found() -> None:
    released = threading.Event()
    entered = 0

    def blocking() -> None:
        nonlocal entered
        entered += 1
        if entered > 1:
            released.wait(10)

    @agent(tools=[work])
    async def caller(ctx: TurnContext) -> None:
        await ctx.call_tool(work, {})

    try:
        with pytest.raises(AssertionError, match=r"\ntool work \(c1\)"):
            await assert_disposable(caller, after=2, grace_seconds=0.05, tools={"work": blocking})
    finally:
        released.set()


async def test_teardown_that_blocks_the_loop_for_too_long_is_found() -> None:
    grace_seconds = 0.01

    @agent(tools=[work])
    async def slow(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(work, {})
        finally:
            until = time.monotonic() + 2 * grace_seconds
            while time.monotonic() < until:
                pass

    with pytest.raises(AssertionError, match=r"s to stop, where 0\.01 s are allowed"):
        await assert_disposable(slow, after=2, grace_seconds=grace_seconds)


async def test_a_malformed_stream_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(transcript: Transcript) -> None:
        assert_well_formed(transcript.events[:-1])

    monkeypatch.setattr(room, "assert_well_formed", judge)
    with pytest.raises(AssertionError, match=r"(?s)stops before the turn ends.*on cancel after"):
        await assert_disposable(shop, "tea", after=3)


@pytest.mark.parametrize("after", [0, 12, [1, 99]])
async def test_a_place_that_the_turn_does_not_have_is_refused(after: int | list[int]) -> None:
    with pytest.raises(ValueError, match="has 11 events"):
        await assert_disposable(shop, "tea", after=after)
