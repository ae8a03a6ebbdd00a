"""The gate as an edge sees it: no tool body runs before its start is known to be durable."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import Agent, Tool, ToolNotExecuted, TurnContext, agent, tool
from tests.agent_runtime.harness import (
    NONE,
    SUSPEND,
    decided,
    ends,
    execute,
    kind_of,
    serving,
    settle,
    texts,
)


class Bench:
    """Two tools that leave a trace, and an agent that calls both at once."""

    def __init__(self, safety: str = "unsafe") -> None:
        self.ran: list[str] = []
        tools = [self._tool("left", safety), self._tool("right", safety)]

        @agent(tools=tools)
        async def pair(ctx: TurnContext) -> None:
            results = await asyncio.gather(*(ctx.call_tool(each, {}) for each in tools))
            await ctx.say(" and ".join(results))

        self.agent: Agent = pair

    def _tool(self, name: str, safety: str) -> Tool:
        @tool(name=name, replay_safety=safety)
        async def body() -> str:
            self.ran.append(name)
            return name

        return body


@pytest.mark.proves("P-RUN-4")
async def test_a_body_waits_until_its_start_is_acknowledged() -> None:
    bench = Bench()
    async with serving(bench.agent) as runtime:
        turn = runtime.turn().start()
        started = await turn.until("tool_call_started", 2)
        assert started.tool_call_started.checkpoint_required
        assert bench.ran == []
        await turn.ack(started.index - 2)
        assert bench.ran == []
        assert await turn.ack(started.index) == ["c1", "c2"]
        assert ends(await turn.rest()) == {"c1": "SUCCEEDED", "c2": "SUCCEEDED"}
        assert texts(turn.events) == ["left and right"]


async def test_one_acknowledgement_may_release_a_part_of_a_batch() -> None:
    bench = Bench()
    async with serving(bench.agent) as runtime:
        turn = runtime.turn().start()
        second = await turn.until("tool_call_started", 2)
        assert await turn.ack(second.index - 1) == ["c1"]
        assert await turn.ack(second.index - 1) == []
        assert await turn.ack(second.index) == ["c2"]
        await turn.rest()
    assert bench.ran == ["left", "right"]


@pytest.mark.proves("P-RUN-5")
async def test_a_call_without_acknowledgement_suspends_the_attempt_and_never_runs() -> None:
    bench = Bench()
    async with serving(bench.agent) as runtime:
        turn = runtime.turn(hold_seconds=0.05).start()
        events = await turn.rest()
        suspended = events[-1].turn_suspended
        assert suspended.reason == pb.SUSPEND_REASON_CHECKPOINT
        assert list(suspended.pending_tool_call_ids) == ["c1", "c2"]
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await turn.ack(100)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        assert bench.ran == []
        assert ends(await turn.resume(execute("c1"), execute("c2")).rest()) == {
            "c1": "SUCCEEDED",
            "c2": "SUCCEEDED",
        }
    assert sorted(bench.ran) == ["left", "right"]


async def test_suspend_mode_ends_the_stream_once_the_whole_batch_waits() -> None:
    bench = Bench()
    async with serving(bench.agent) as runtime:
        turn = runtime.turn(mode=SUSPEND).start()
        events = await turn.rest()
        assert turn.kinds == [
            "turn_started",
            "tool_call_started",
            "tool_call_started",
            "turn_suspended",
        ]
        assert list(events[-1].turn_suspended.pending_tool_call_ids) == ["c1", "c2"]
        assert bench.ran == []
        await turn.resume().rest()
        assert turn.kinds.count("tool_call_started") == 0
        assert texts(turn.events) == ["left and right"]


async def test_without_gate_only_replay_safe_tools_run_at_once() -> None:
    safe, unsafe = Bench("read_only"), Bench("unsafe")
    async with serving(safe.agent) as runtime:
        turn = runtime.turn(mode=NONE).start()
        await turn.rest()
        assert safe.ran == ["left", "right"]
    async with serving(unsafe.agent) as runtime:
        turn = runtime.turn(mode=NONE).start()
        started = await turn.until("tool_call_started", 2)
        assert started.tool_call_started.checkpoint_required
        assert unsafe.ran == []
        await turn.ack(started.index)
        await turn.rest()
        assert unsafe.ran == ["left", "right"]


async def test_an_acknowledgement_of_another_attempt_releases_nothing() -> None:
    bench = Bench()
    async with serving(bench.agent) as runtime:
        turn = runtime.turn().start()
        started = await turn.until("tool_call_started", 2)
        for attempt in (2, 7):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await turn.ack(started.index, attempt=attempt)
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        assert bench.ran == []


@pytest.mark.proves("S47")
async def test_an_approval_waits_for_a_person_whatever_is_acknowledged() -> None:
    ran = []

    @tool(approval=True)
    async def wire_money() -> str:
        ran.append("wire")
        return "wired"

    @agent(tools=[wire_money])
    async def banker(ctx: TurnContext) -> None:
        try:
            await ctx.say(await ctx.call_tool(wire_money, {}))
        except ToolNotExecuted:
            await ctx.say("denied")

    async with serving(banker) as runtime:
        turn = runtime.turn().start()
        suspended = (await turn.rest())[-1].turn_suspended
        assert suspended.reason == pb.SUSPEND_REASON_INPUT_REQUIRED
        assert list(suspended.pending_tool_call_ids) == ["c1"]
        assert "wire_money" in suspended.prompt
        # An hour and a deploy later nobody has decided yet: it waits on, and costs nothing.
        assert kind_of((await turn.resume().rest())[-1]) == "turn_suspended"
        assert ran == []
        assert texts(await turn.resume(execute("c1")).rest()) == ["wired"]
        assert ran == ["wire"]

        other = runtime.turn().start()
        await other.rest()
        denial = decided("c1", outcome=pb.TOOL_OUTCOME_NOT_EXECUTED)
        assert texts(await other.resume(denial).rest()) == ["denied"]
        assert ran == ["wire"]


async def test_an_approved_call_is_never_repeated_on_its_old_permission() -> None:
    """Not even a read: what a person allowed once is allowed once."""
    ran = []

    @tool(approval=True, replay_safety="read_only")
    async def read_file() -> None:
        ran.append("read")
        await asyncio.Event().wait()

    @agent(tools=[read_file])
    async def reader(ctx: TurnContext) -> None:
        await ctx.call_tool(read_file, {})

    async with serving(reader) as runtime:
        turn = runtime.turn().start()
        await turn.rest()
        await turn.resume(execute("c1")).until("turn_started")
        await settle(lambda: ran == ["read"])
        turn.leave()
        assert ends(await turn.resume().rest()) == {"c1": "UNKNOWN"}
    assert ran == ["read"]


async def test_a_browser_tool_suspends_until_its_result_comes_back() -> None:
    @tool(executor="client")
    def pick() -> str:
        raise AssertionError("the browser runs it")

    @agent(tools=[pick])
    async def picker(ctx: TurnContext) -> None:
        await ctx.say(await ctx.call_tool(pick, {}))

    async with serving(picker) as runtime:
        turn = runtime.turn().start()
        suspended = (await turn.rest())[-1].turn_suspended
        assert suspended.reason == pb.SUSPEND_REASON_CLIENT_TOOL
        assert texts(await turn.resume(decided("c1", "red")).rest()) == ["red"]
        assert ends(turn.events) == {"c1": "SUCCEEDED"}


async def test_a_question_is_answered_by_a_resolution_or_by_the_input_of_the_resume() -> None:
    @agent()
    async def asker(ctx: TurnContext) -> None:
        await ctx.say(await ctx.ask("how many?", {"type": "string"}))

    async with serving(asker) as runtime:
        turn = runtime.turn().start()
        suspended = (await turn.rest())[-1].turn_suspended
        assert (suspended.reason, suspended.prompt) == (
            pb.SUSPEND_REASON_INPUT_REQUIRED,
            "how many?",
        )
        assert suspended.response_schema_json == '{"type":"string"}'
        assert texts(await turn.resume(decided("c1", "three")).rest()) == ["three"]
        other = runtime.turn().start()
        await other.rest()
        assert texts(await other.resume(answer="four").rest()) == ["four"]


async def test_what_a_person_must_allow_is_never_listed_with_what_an_edge_may_release() -> None:
    @tool(approval=True)
    async def delicate() -> None: ...

    @tool()
    async def plain() -> None: ...

    @agent(tools=[delicate, plain])
    async def both(ctx: TurnContext) -> None:
        await asyncio.gather(ctx.call_tool(delicate, {}), ctx.call_tool(plain, {}))

    async with serving(both) as runtime:
        turn = runtime.turn(mode=SUSPEND).start()
        suspended = (await turn.rest())[-1].turn_suspended
        assert suspended.reason == pb.SUSPEND_REASON_CHECKPOINT
        assert list(suspended.pending_tool_call_ids) == ["c2"]
        suspended = (await turn.resume(execute("c2")).rest())[-1].turn_suspended
        assert suspended.reason == pb.SUSPEND_REASON_INPUT_REQUIRED
        assert list(suspended.pending_tool_call_ids) == ["c1"]


@pytest.mark.proves("P-RUN-5")
async def test_a_late_acknowledgement_does_not_open_a_gate_that_has_closed() -> None:
    """One call timed out; its batch still has a body running, so the attempt lives on."""
    ran, go = [], asyncio.Event()

    @tool(name="slow")
    async def slow() -> None:
        ran.append("slow")
        await go.wait()

    @tool(name="late")
    async def late() -> None:
        ran.append("late")

    @agent(tools=[slow, late])
    async def both(ctx: TurnContext) -> None:
        await asyncio.gather(ctx.call_tool(slow, {}), ctx.call_tool(late, {}))

    async with serving(both) as runtime:
        turn = runtime.turn(hold_seconds=0.2).start()
        second = await turn.until("tool_call_started", 2)
        assert await turn.ack(second.index - 1) == ["c1"]
        attempt = next(iter(runtime.service._attempts.values()))
        await settle(lambda: attempt._gate._closed)
        assert await turn.ack(second.index) == []
        go.set()
        events = await turn.rest()
    assert ran == ["slow"]
    assert ends(events) == {"c1": "SUCCEEDED"}
    assert list(events[-1].turn_suspended.pending_tool_call_ids) == ["c2"]
