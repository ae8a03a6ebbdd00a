"""Fencing, an edge that leaves, a drain; and the status codes of refusals."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import TurnContext, agent, tool
from agent_runtime.service import Limits
from tests.agent_runtime.bench import Body, running
from tests.agent_runtime.harness import NONE, Turn, ends, kind_of, serving, settle, soon, texts


async def test_a_higher_attempt_ends_the_lower_one_here_at_once() -> None:
    body = Body()
    async with serving(body.agent) as runtime:
        old = await running(body, runtime.turn())
        new = Turn(old.stub, old.ref.turn_id, "hello")
        new.history = list(old.history)
        new.ref.attempt = 1
        await new.resume().until("turn_started")
        assert await old.code() is grpc.StatusCode.ABORTED
        await settle(lambda: body.cancelled)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await old.ack(100)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        assert ends(await new.rest()) == {"c1": "UNKNOWN"}


@pytest.mark.proves("S41")
@pytest.mark.proves("P-RUN-3")
async def test_an_attempt_not_higher_than_one_seen_is_refused() -> None:
    @agent()
    async def brief(ctx: TurnContext) -> None:
        await ctx.say("hi")

    async with serving(brief) as runtime:
        turn = runtime.turn().start()
        await turn.rest()
        await turn.resume(attempts_lost=3).rest()
        for attempt in (1, 2, 5):
            stale = Turn(turn.stub, turn.ref.turn_id, "hello")
            stale.history = list(turn.history)
            stale.ref.attempt = attempt - 1
            assert await stale.resume().code() is grpc.StatusCode.ABORTED
        again = Turn(turn.stub, turn.ref.turn_id, "hello")
        assert await again.start().code() is grpc.StatusCode.ABORTED


async def test_the_attempt_that_runs_here_exists_already() -> None:
    body = Body()
    async with serving(body.agent) as runtime:
        turn = await running(body, runtime.turn())
        again = Turn(turn.stub, turn.ref.turn_id, "hello")
        assert await again.start().code() is grpc.StatusCode.ALREADY_EXISTS
        body.go.set()
        assert texts(await turn.rest()) == ["before", "done"]


async def test_an_edge_that_leaves_stops_its_attempt() -> None:
    body = Body()
    async with serving(body.agent) as runtime:
        turn = await running(body, runtime.turn())
        turn.leave()
        await settle(lambda: body.cancelled)
        await settle(lambda: not runtime.service._alive)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await turn.cancel()
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.proves("P-RUN-11")
async def test_a_drain_suspends_between_tool_bodies_and_refuses_new_turns() -> None:
    body, other = Body(), Body()

    @agent(name="idle")
    async def idle(ctx: TurnContext) -> None:
        await other.go.wait()
        await ctx.say("resumed")

    async with serving(body.agent, idle) as runtime:
        busy = await running(body, runtime.turn())
        waiting = runtime.turn(agent="idle").start()
        await waiting.until("turn_started")
        drained = asyncio.create_task(runtime.service.drain(5.0))
        suspended = (await waiting.rest())[-1].turn_suspended
        assert suspended.reason == pb.SUSPEND_REASON_DRAINING
        assert await runtime.turn().start().code() is grpc.StatusCode.UNAVAILABLE
        assert not drained.done()
        body.go.set()
        events = await busy.rest()
        assert ends(events) == {"c1": "SUCCEEDED"}
        assert events[-1].turn_suspended.reason == pb.SUSPEND_REASON_DRAINING
        assert texts(events) == ["before"]
        await soon(drained)
    async with serving(body.agent, idle) as runtime:
        busy.stub = runtime.stub
        assert texts(await busy.resume().rest()) == ["done"]


async def test_a_drain_lets_a_call_at_the_gate_wait_for_the_next_process() -> None:
    body = Body()
    async with serving(body.agent) as runtime:
        turn = runtime.turn().start()
        await turn.until("tool_call_started")
        await soon(runtime.service.drain(5.0))
        suspended = (await turn.rest())[-1].turn_suspended
        assert suspended.reason == pb.SUSPEND_REASON_DRAINING
        assert list(suspended.pending_tool_call_ids) == ["c1"]
        assert not body.running.is_set()
    body.go.set()
    async with serving(body.agent) as runtime:
        turn.stub = runtime.stub
        assert ends(await turn.resume().rest()) == {"c1": "SUCCEEDED"}


async def test_a_drain_starts_no_further_body_while_one_still_runs() -> None:
    body, ran = Body(), []

    @tool(name="second")
    async def second() -> None:
        ran.append("second")

    @agent(name="both", tools=[body.agent.tools["body"], second])
    async def both(ctx: TurnContext) -> None:
        await asyncio.gather(ctx.call_tool("body", {}), ctx.call_tool(second, {}))

    async with serving(both) as runtime:
        turn = runtime.turn().start()
        waiting = await turn.until("tool_call_started", 2)
        await turn.ack(waiting.index - 1)
        await soon(body.running.wait())
        drained = asyncio.create_task(runtime.service.drain(5.0))
        await asyncio.sleep(0)
        assert await turn.ack(waiting.index) == []
        body.go.set()
        events = await turn.rest()
        await soon(drained)
    assert ran == []
    assert ends(events) == {"c1": "SUCCEEDED"}
    assert list(events[-1].turn_suspended.pending_tool_call_ids) == ["c2"]


async def test_a_drain_starts_no_ungated_body_either() -> None:
    body, other, ran = Body(), asyncio.Event(), []

    @tool(name="second", replay_safety="read_only")
    async def second() -> None:
        ran.append("second")

    @agent(name="both", tools=[body.agent.tools["body"], second])
    async def both(ctx: TurnContext) -> None:
        async def later() -> None:
            await other.wait()
            await ctx.call_tool(second, {})

        await asyncio.gather(ctx.call_tool("body", {}), later())

    async with serving(both) as runtime:
        turn = await running(body, runtime.turn(mode=NONE))
        drained = asyncio.create_task(runtime.service.drain(5.0))
        await asyncio.sleep(0)
        other.set()
        await turn.until("tool_call_started", 2)
        body.go.set()
        assert ends(await turn.rest()) == {"c1": "SUCCEEDED"}
        await soon(drained)
    assert ran == []


async def test_a_drain_gives_up_what_runs_past_its_deadline() -> None:
    body = Body()
    async with serving(body.agent) as runtime:
        turn = await running(body, runtime.turn())
        await soon(runtime.service.drain(0.05))
        assert await turn.code() is grpc.StatusCode.UNAVAILABLE
        assert body.cancelled
        assert kind_of(turn.events[-1]) == "tool_call_started"


async def test_requests_that_make_no_sense_are_refused() -> None:
    body = Body()
    async with serving(body.agent, limits=Limits(max_attempts=1)) as runtime:
        nameless = runtime.turn()
        nameless.ref.session_id = ""
        assert await nameless.start().code() is grpc.StatusCode.INVALID_ARGUMENT
        unknown = runtime.turn(agent="nobody").start()
        assert await unknown.code() is grpc.StatusCode.NOT_FOUND
        turn = await running(body, runtime.turn())
        assert await runtime.turn().start().code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        body.go.set()
        await turn.rest()


async def test_a_runtime_describes_itself() -> None:
    async with serving(Body().agent) as runtime:
        info = await soon(runtime.stub.GetRuntimeInfo(pb.GetRuntimeInfoRequest()))
    assert list(info.agents) == ["worker"]
    assert info.resume_supported
    assert info.instance_id == "instance"
    assert set(info.checkpoint_modes) == {
        pb.CHECKPOINT_MODE_HOLD,
        pb.CHECKPOINT_MODE_SUSPEND,
        pb.CHECKPOINT_MODE_NONE,
    }
