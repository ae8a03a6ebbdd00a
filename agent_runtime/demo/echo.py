"""The smallest agent: it repeats what it is told."""

from __future__ import annotations

from agent_runtime.agent import Agent, agent
from agent_runtime.context import TurnContext
from agent_runtime.demo.pace import say_slowly
from agent_runtime.demo.settings import DemoSettings


def make_echo(settings: DemoSettings) -> Agent:
    """Return the agent."""

    @agent(name="echo")
    async def echo(ctx: TurnContext) -> None:
        await say_slowly(ctx, ctx.input_text or "(nothing)", settings.word_seconds)

    return echo
