"""A tool that runs until it is told to go on, for the tests of endings."""

from __future__ import annotations

import asyncio

from agent_runtime import TurnContext, agent, tool
from tests.agent_runtime.harness import Turn, soon


class Body:
    """A tool that runs until it is told to go on, and tells what becomes of it."""

    def __init__(self, *, on_cancel: str = "") -> None:
        self.running = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = False

        @tool(name="body")
        async def body() -> str:
            self.running.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                if not on_cancel:
                    raise
                return on_cancel
            return "done"

        @agent(name="worker", tools=[body])
        async def worker(ctx: TurnContext) -> None:
            await ctx.say("before")
            await ctx.say(await ctx.call_tool(body, {}))

        self.agent = worker


async def running(body: Body, turn: Turn) -> Turn:
    """Bring a turn to where the body runs."""
    await turn.ack((await turn.start().until("tool_call_started")).index)
    await soon(body.running.wait())
    return turn
