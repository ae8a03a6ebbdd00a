"""An agent for a process that must not wait for it: its tools cannot be stopped.

The input names the tool that it calls.
"""

from __future__ import annotations

import asyncio
import threading

from agent_runtime import ToolContext, TurnContext, agent, tool


@tool(name="deaf")
async def deaf(ctx: ToolContext) -> None:
    """Ignore every cancellation."""
    ctx.progress("running")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@tool(name="stuck")
def stuck(ctx: ToolContext) -> None:
    """Block a thread for ever."""
    ctx.progress("running")
    threading.Event().wait()


@agent(name="stubborn", tools=[deaf, stuck])
async def stubborn(ctx: TurnContext) -> None:
    await ctx.call_tool(ctx.input_text, {})
