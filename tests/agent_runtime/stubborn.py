"""Agents that a process must bear with: one cannot be stopped, one has secrets logged.

Knows nothing of the process.
"""

from __future__ import annotations

import asyncio
import logging
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
    """Call the tool that the input names."""
    await ctx.call_tool(ctx.input_text, {})


@agent(name="loud")
async def loud(ctx: TurnContext) -> None:
    """Have libraries log the input in every way they know."""
    secret = ctx.input_text
    logging.getLogger("http.client").info("GET /%s", secret)
    logging.getLogger("http.client").warning("retrying %s", secret)
    try:
        raise ValueError(secret)
    except ValueError as error:
        logging.getLogger("grpc._cython.cygrpc").exception("Unexpected error")
        context = {"message": "Task exception was never retrieved", "exception": error}
        asyncio.get_running_loop().call_exception_handler({**context, "future": secret})
