"""Cancellation: what ran is told, what did not run is told, and what was shown stays."""

from __future__ import annotations

import asyncio
import gc
import threading

import grpc
import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import ToolFailed, TurnContext, agent, tool
from agent_runtime.service import Limits
from tests.agent_runtime.bench import Body, running
from tests.agent_runtime.harness import Turn, ends, kind_of, serving, settle, soon, texts


@pytest.mark.proves("P-RUN-8", "P-EVT-5")
async def test_a_cancel_at_the_gate_is_not_executed() -> None:
    body = Body()
    async with serving(body.agent) as runtime:
        turn = runtime.turn().start()
        started = await turn.until("tool_call_started")
        await turn.cancel()
        events = await turn.rest()
        assert not await _acknowledged(turn, started.index)
    assert ends(events) == {"c1": "NOT_EXECUTED"}
    assert not body.running.is_set()
    assert events[-1].turn_finished.outcome == pb.TURN_OUTCOME_CANCELLED
    assert events[-1].turn_finished.error.message == "user"


async def _acknowledged(turn: Turn, index: int) -> bool:
    try:
        return bool(await turn.ack(index))
    except grpc.aio.AioRpcError:
        return False


async def test_a_cancel_right_after_its_acknowledgement_never_splits_the_two() -> None:
    """Whichever comes first wins whole: the body ran and is UNKNOWN, or it did not run."""
    body = Body()
    async with serving(body.agent) as runtime:
        turn = runtime.turn().start()
        started = await turn.until("tool_call_started")
        attempt = next(iter(runtime.service._attempts.values()))
        assert attempt.acknowledge(started.index) == ["c1"]
        attempt.cancel("user", 0.1)
        events = await turn.rest()
    assert ends(events) == {"c1": "NOT_EXECUTED"}
    assert not body.running.is_set()


@pytest.mark.parametrize(("on_cancel", "outcome"), [("", "UNKNOWN"), ("rolled back", "SUCCEEDED")])
async def test_a_cancel_in_a_tool_tells_what_the_tool_made_of_it(
    on_cancel: str, outcome: str
) -> None:
    body = Body(on_cancel=on_cancel)
    async with serving(body.agent) as runtime:
        turn = await running(body, runtime.turn())
        attempt = next(iter(runtime.service._attempts.values()))
        await turn.cancel()
        attempt.cancel("again", 0.0)
        events = await turn.rest()
    assert body.cancelled
    assert ends(events) == {"c1": outcome}
    assert texts(events) == ["before"]
    assert kind_of(events[-1]) == "turn_finished"


async def test_a_tool_in_a_thread_cannot_be_stopped_and_is_unknown() -> None:
    running, go = threading.Event(), threading.Event()

    @tool()
    def blocking() -> None:
        running.set()
        go.wait(10)

    @agent(tools=[blocking])
    async def blocked(ctx: TurnContext) -> None:
        await ctx.call_tool(blocking, {})

    async with serving(blocked) as runtime:
        turn = runtime.turn().start()
        await turn.ack((await turn.until("tool_call_started")).index)
        await settle(running.is_set)
        await turn.cancel()
        assert ends(await turn.rest()) == {"c1": "UNKNOWN"}
        go.set()


async def test_a_tool_that_ignores_its_cancellation_is_given_up_after_the_grace_period() -> None:
    running, go = asyncio.Event(), asyncio.Event()

    @tool()
    async def deaf() -> None:
        running.set()
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    @agent(tools=[deaf])
    async def caller(ctx: TurnContext) -> None:
        await ctx.call_tool(deaf, {})

    async with serving(caller) as runtime:
        turn = runtime.turn().start()
        await turn.ack((await turn.until("tool_call_started")).index)
        await soon(running.wait())
        await turn.cancel(grace_seconds=0.05)
        events = await turn.rest()
        go.set()
    assert ends(events) == {"c1": "UNKNOWN"}
    assert events[-1].turn_finished.outcome == pb.TURN_OUTCOME_CANCELLED


async def test_an_agent_may_give_a_call_up_and_go_on() -> None:
    body = Body()

    @agent(name="hasty", tools=body.agent.tools.values())
    async def hasty(ctx: TurnContext) -> None:
        try:
            async with asyncio.timeout(0.05):
                await ctx.call_tool("body", {})
        except TimeoutError:
            await ctx.say("too slow")

    async with serving(hasty) as runtime:
        events = await (await running(body, runtime.turn())).rest()
    assert body.cancelled
    assert ends(events) == {"c1": "UNKNOWN"}
    assert texts(events) == ["too slow"]
    assert events[-1].turn_finished.outcome == pb.TURN_OUTCOME_COMPLETED


async def test_an_agent_that_ignores_its_cancellation_is_settled_after_the_grace_period() -> None:
    go = asyncio.Event()

    @agent()
    async def deaf(ctx: TurnContext) -> None:
        async with ctx.message() as message:
            await message.say("still here")
            while not go.is_set():
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    continue

    async with serving(deaf) as runtime:
        turn = runtime.turn().start()
        await turn.until("text_delta")
        await turn.cancel(grace_seconds=0.05)
        events = await turn.rest()
        go.set()
    assert events[-2].message_completed.status == pb.MESSAGE_STATUS_INCOMPLETE
    assert texts(events) == ["still here"]


async def test_what_an_agent_raises_long_after_its_stop_is_printed_by_nobody() -> None:
    going, go, printed = asyncio.Event(), asyncio.Event(), []
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: printed.append(told))

    @agent()
    async def late(ctx: TurnContext) -> None:
        going.set()
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        going.clear()
        raise ValueError("s3cret")

    async with serving(late, limits=Limits(grace_seconds=0.05)) as runtime:
        turn = runtime.turn().start()
        await soon(going.wait())
        await turn.cancel(grace_seconds=0.05)
        await turn.rest()
        await settle(lambda: not runtime.service._alive)
        go.set()
        await settle(lambda: not going.is_set())
    gc.collect()
    assert printed == []


@pytest.mark.proves("S55")
async def test_what_was_said_before_a_stop_is_kept_as_incomplete() -> None:
    @agent()
    async def speaker(ctx: TurnContext) -> None:
        async with ctx.message() as message:
            await message.say("half a sen")
            await asyncio.Event().wait()

    async with serving(speaker) as runtime:
        turn = runtime.turn().start()
        await turn.until("text_delta")
        await turn.cancel()
        events = await turn.rest()
    assert texts(events) == ["half a sen"]
    assert events[-2].message_completed.status == pb.MESSAGE_STATUS_INCOMPLETE
    assert events[-1].turn_finished.outcome == pb.TURN_OUTCOME_CANCELLED


async def test_a_stopped_agent_sees_its_cancellation_and_not_a_failed_call() -> None:
    body = Body()

    @agent(name="talkative", tools=body.agent.tools.values())
    async def talkative(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool("body", {})
        except ToolFailed:
            await ctx.say("it failed, but I go on")

    async with serving(talkative) as runtime:
        turn = runtime.turn().start()
        await turn.until("tool_call_started")
        await turn.cancel()
        events = await turn.rest()
    assert ends(events) == {"c1": "NOT_EXECUTED"}
    assert texts(events) == []
