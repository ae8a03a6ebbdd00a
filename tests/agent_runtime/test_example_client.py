"""The example client, against a runtime that crashes, asks and drains."""

from __future__ import annotations

import asyncio

import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import ToolNotExecuted, TurnContext, agent, tool
from agent_runtime.example_client import Journal, run_turn
from tests.agent_runtime.harness import kind_of, serving, soon, texts


async def test_a_turn_survives_a_crash_and_gets_its_answers() -> None:
    ran: list[str] = []
    alive = asyncio.Event()

    @tool()
    async def effect() -> None:
        ran.append("effect")

    @tool(approval=True)
    async def delicate() -> None:
        ran.append("delicate")

    @agent(name="a", tools=[effect, delicate])
    async def busy(ctx: TurnContext) -> None:
        await ctx.call_tool(effect, {})
        await ctx.say("after the effect")
        if not alive.is_set():
            alive.set()
            attempt = next(iter(runtime.service._attempts.values()))
            attempt.abandon()
        await ctx.call_tool(delicate, {})
        await ctx.say(f"name is {await ctx.ask('name?')}")

    shown: list[pb.AgentEvent] = []
    replies = iter(["yes", "Ada"])
    async with serving(busy) as runtime:
        journal = Journal("s", "t", "a", "go")
        finished = await soon(
            run_turn(runtime.stub, journal, show=shown.append, answer=lambda prompt: next(replies))
        )
    assert finished.outcome == pb.TURN_OUTCOME_COMPLETED
    assert ran == ["effect", "delicate"]
    assert texts(journal.events) == ["after the effect", "name is Ada"]
    assert [kind_of(event) for event in journal.events].count("turn_started") == 4


async def test_a_denied_call_does_not_run() -> None:
    @tool(approval=True)
    async def delicate() -> None:
        raise AssertionError("must not run")

    @agent(name="a", tools=[delicate])
    async def busy(ctx: TurnContext) -> None:
        await ctx.call_tool(delicate, {})

    async with serving(busy) as runtime:
        journal = Journal("s", "t", "a", "go")
        finished = await soon(
            run_turn(runtime.stub, journal, show=lambda event: None, answer=lambda prompt: "no")
        )
    assert finished.error.message == "ToolNotExecuted"


async def test_a_tool_of_the_client_is_refused_once_and_the_agent_hears_why() -> None:
    @tool(executor="client")
    async def locate() -> None: ...

    @agent(name="a", tools=[locate])
    async def busy(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(locate, {})
        except ToolNotExecuted as refused:
            await ctx.say(refused.reason)

    async with serving(busy) as runtime:
        journal = Journal("s", "t", "a", "go")
        await soon(
            run_turn(runtime.stub, journal, show=lambda event: None, answer=lambda prompt: "")
        )
    assert texts(journal.events) == ["CLIENT_TOOLS_UNSUPPORTED"]
    assert journal.attempt == 2


async def test_an_acknowledgement_that_finds_no_attempt_means_resume(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = []

    @tool(replay_safety="idempotent")
    async def effect() -> None:
        ran.append("effect")

    @agent(name="a", tools=[effect])
    async def busy(ctx: TurnContext) -> None:
        await ctx.call_tool(effect, {})

    def lose_first(event: pb.AgentEvent) -> None:
        if event.HasField("tool_call_started") and journal.attempt == 1:
            runtime.service._attempts.clear()

    monkeypatch.setattr("agent_runtime.example_client.RETRY_SECONDS", 0)
    async with serving(busy) as runtime:
        journal = Journal("s", "t", "a", "go")
        finished = await soon(
            run_turn(runtime.stub, journal, show=lose_first, answer=lambda prompt: "")
        )
    assert finished.outcome == pb.TURN_OUTCOME_COMPLETED
    assert ran == ["effect"]
    assert journal.attempt == 2


async def test_a_runtime_that_is_not_there_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    @agent(name="a")
    async def quiet(ctx: TurnContext) -> None: ...

    monkeypatch.setattr("agent_runtime.example_client.RETRY_SECONDS", 0)
    async with serving(quiet) as runtime:
        await runtime.service.drain(0.1)
        journal = Journal("s", "t", "a", "go")
        giving_up = run_turn(
            runtime.stub, journal, show=lambda event: None, answer=lambda prompt: ""
        )
        with pytest.raises(ConnectionError):
            await soon(giving_up)
