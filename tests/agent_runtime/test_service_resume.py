"""Resume: what the journal holds is not done again, and what it does not hold is done once."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import ToolContext, ToolFailed, ToolOutcomeUnknown, TurnContext, agent, tool
from agent_runtime.errors import NondeterministicAgent
from tests.agent_runtime.harness import (
    SUSPEND,
    Turn,
    ends,
    execute,
    kind_of,
    serving,
    settle,
    soon,
    texts,
)


@pytest.mark.proves("S36")
async def test_a_crash_in_a_batch_does_not_run_those_again_that_had_their_effect() -> None:
    ran: list[str] = []
    block = asyncio.Event()

    @tool()
    async def effect(name: str) -> str:
        ran.append(name)
        if name != "first":
            await block.wait()
        return name

    @agent(tools=[effect])
    async def batch(ctx: TurnContext) -> None:
        calls = [ctx.call_tool(effect, {"name": name}) for name in ("first", "second", "third")]
        results = await asyncio.gather(*calls, return_exceptions=True)
        await ctx.say(" ".join(repr(result)[:7] for result in results))

    async with serving(batch) as runtime:
        turn = runtime.turn().start()
        await turn.ack((await turn.until("tool_call_started", 3)).index)
        await turn.until("tool_call_finished")
        turn.leave()
        block.set()
        events = await turn.resume().rest()
    assert ran == ["first", "second", "third"]
    assert ends(events) == {"c2": "UNKNOWN", "c3": "UNKNOWN"}
    assert texts(events) == ["'first' ToolOut ToolOut"]


@pytest.mark.proves("S38")
async def test_the_result_of_one_long_call_does_not_start_the_others_again() -> None:
    """Six calls wait for the browser; each resume brings one result, and nothing is asked twice."""

    @tool(executor="client")
    def long_job(number: int) -> int:
        raise AssertionError("runs elsewhere")

    @agent(tools=[long_job])
    async def six(ctx: TurnContext) -> None:
        calls = [ctx.call_tool(long_job, {"number": number}) for number in range(6)]
        await ctx.say(str(sum(await asyncio.gather(*calls))))

    async with serving(six) as runtime:
        turn = runtime.turn().start()
        await turn.rest()
        for number in range(6):
            finished = pb.ToolCallFinished(
                outcome=pb.TOOL_OUTCOME_SUCCEEDED, result_json=str(number)
            )
            decision = pb.ToolCallResolution(tool_call_id=f"c{number + 1}", finished=finished)
            events = await turn.resume(decision).rest()
            assert "tool_call_started" not in turn.kinds
            assert list(ends(events)) == [f"c{number + 1}"]
        assert texts(turn.events) == ["15"]


@pytest.mark.proves("S40", "P-RUN-6")
async def test_an_unsafe_call_of_unknown_outcome_is_told_and_not_run_again() -> None:
    ran: list[str] = []

    @tool(replay_safety="unsafe")
    async def pay() -> None:
        ran.append("pay")
        await asyncio.Event().wait()

    @agent(tools=[pay])
    async def payer(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(pay, {})
        except ToolOutcomeUnknown as unknown:
            await ctx.say(f"{unknown.tool} may have run")

    async with serving(payer) as runtime:
        turn = runtime.turn().start()
        await turn.ack((await turn.until("tool_call_started")).index)
        await settle(lambda: ran == ["pay"])
        turn.leave()
        events = await turn.resume().rest()
        assert [kind_of(event) for event in events[:2]] == ["turn_started", "tool_call_finished"]
        assert events[1].tool_call_finished.error.reason == "OUTCOME_UNKNOWN"
        assert texts(events) == ["pay may have run"]
        assert ran == ["pay"]
        # A person who checked may still decide to run it again, with the same key.
        turn.forget_after("tool_call_started")
        await turn.resume(execute("c1")).until("turn_started")
        await settle(lambda: ran == ["pay", "pay"])


@pytest.mark.parametrize("safety", ["read_only", "idempotent"])
@pytest.mark.proves("P-RUN-6")
async def test_a_replay_safe_call_runs_again_with_the_same_key(safety: str) -> None:
    keys: list[str] = []
    go = asyncio.Event()

    @tool(replay_safety=safety)
    async def look(ctx: ToolContext) -> str:
        keys.append(ctx.idempotency_key)
        await go.wait()
        return "seen"

    @agent(tools=[look])
    async def looker(ctx: TurnContext) -> None:
        await ctx.say(await ctx.call_tool(look, {}))

    async with serving(looker) as runtime:
        turn = runtime.turn().start()
        started = await turn.until("tool_call_started")
        await turn.ack(started.index)
        await settle(lambda: len(keys) == 1)
        turn.leave()
        go.set()
        assert texts(await turn.resume().rest()) == ["seen"]
    assert keys == [started.tool_call_started.idempotency_key] * 2 == ["s/t1/c1"] * 2


async def test_a_replay_emits_nothing_that_the_journal_holds() -> None:
    calls: list[int] = []

    @tool(replay_safety="read_only")
    async def count() -> int:
        calls.append(1)
        return 1

    @agent(tools=[count])
    async def chatty(ctx: TurnContext) -> None:
        await ctx.say("one")
        await ctx.set_state("a", await ctx.call_tool(count, {}))
        await ctx.set_state("a", ctx.state["a"] + 1)
        await ctx.custom("acme.note", {"n": 1})
        await ctx.notice("SLOW")
        async with ctx.message() as message:
            await message.say("two ")
            await message.reason("because")
        await ctx.ask("go on?")
        await ctx.say(f"state {ctx.state['a']}")

    async with serving(chatty) as runtime:
        turn = runtime.turn(mode=SUSPEND).start()
        await turn.rest()
        await turn.resume().rest()
        assert kind_of(turn.events[-1]) == "turn_suspended"
        before = len(turn.history)
        events = await turn.resume(answer="yes").rest()
        assert turn.kinds == [
            "turn_started",
            "tool_call_finished",
            "text_delta",
            "message_completed",
            "turn_finished",
        ]
        assert texts(events) == ["state 2"]
        assert events[3].message_completed.message_id == "m3"
        # Once more from any point of the journal: the end is the same.
        for length in range(1, before):
            again = Turn(turn.stub, f"again-{length}", "hello", mode=SUSPEND)
            again.history = list(turn.history[:length])
            again.ref.attempt = 5
            await again.resume(attempts_lost=1).rest()
            while kind_of(again.events[-1]) == "turn_suspended":
                await again.resume(answer="yes").rest()
            assert texts(again.history) == ["one", "two ", "state 2"]
    assert len(calls) <= 1 + before


async def test_a_failure_is_replayed_as_a_failure() -> None:
    @tool(replay_safety="read_only")
    async def broken() -> None:
        raise RuntimeError("secret detail")

    @agent(tools=[broken])
    async def stubborn(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(broken, {})
        except ToolFailed as failure:
            await ctx.ask("go on?")
            await ctx.say(failure.reason)

    async with serving(stubborn) as runtime:
        turn = runtime.turn().start()
        events = await turn.run()
        assert ends(events) == {"c1": "FAILED"}
        assert not any("secret" in str(event) for event in events)
        assert texts(await turn.resume(answer="yes").rest()) == ["TOOL_ERROR"]


@pytest.mark.parametrize("change", ["name", "arguments"])
async def test_a_replay_that_differs_fails_the_turn_and_runs_nothing(change: str) -> None:
    ran: list[str] = []
    first = True

    @tool(name="a")
    async def a(x: int) -> None:
        ran.append("a")

    @tool(name="b")
    async def b(x: int) -> None:
        ran.append("b")

    @agent(tools=[a, b])
    async def fickle(ctx: TurnContext) -> None:
        try:
            name = "a" if first or change != "name" else "b"
            await ctx.call_tool(name, {"x": 1 if first or change != "arguments" else 2})
        except NondeterministicAgent:
            await ctx.say("swallowed")

    async with serving(fickle) as runtime:
        turn = runtime.turn(mode=SUSPEND).start()
        await turn.rest()
        first = False
        events = await turn.resume(execute("c1")).rest()
    finished = events[-1].turn_finished
    assert finished.outcome == pb.TURN_OUTCOME_FAILED
    assert finished.error.reason == "NONDETERMINISTIC_AGENT"
    assert ends(events) == {"c1": "NOT_EXECUTED"}
    assert ran == []


@pytest.mark.proves("P-EVT-3")
async def test_a_message_cut_by_a_crash_is_made_anew_under_its_id() -> None:
    go = asyncio.Event()

    @agent()
    async def speaker(ctx: TurnContext) -> None:
        await ctx.say("whole")
        async with ctx.message() as message:
            await message.say("cut")
            await go.wait()

    async with serving(speaker) as runtime:
        turn = runtime.turn().start()
        await turn.until("text_delta", 2)
        turn.leave()
        go.set()
        events = await turn.resume().rest()
    assert texts(events) == ["cut"]
    assert {event.text_delta.message_id for event in events if kind_of(event) == "text_delta"} == {
        "m2"
    }


async def test_earlier_turns_are_handed_to_the_agent() -> None:
    seen: list[object] = []

    @tool(replay_safety="read_only")
    async def now() -> str:
        return "noon"

    @agent(tools=[now])
    async def remembering(ctx: TurnContext) -> None:
        seen.append([type(item).__name__ for item in ctx.history])
        seen.append(dict(ctx.state))
        await ctx.set_state("asked", ctx.input_text)
        await ctx.call_tool(now, {})
        await ctx.say(f"you said {ctx.input_text}")

    async with serving(remembering) as runtime:
        first = runtime.turn("one").start()
        await first.run()
        second = runtime.turn("two", history=first.history).start()
        await second.run()
        assert texts(second.events) == ["you said two"]
    assert seen == [[], {}, ["UserMessage", "ToolRecord", "MessageCompleted"], {"asked": "one"}]


async def test_a_history_without_the_turn_is_refused() -> None:
    @agent()
    async def any_agent(ctx: TurnContext) -> None: ...

    async with serving(any_agent) as runtime:
        request = pb.ResumeTurnRequest(turn=pb.TurnRef(session_id="s", turn_id="t", attempt=2))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await soon(runtime.stub.ResumeTurn(request).read())
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
