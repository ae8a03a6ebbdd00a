"""The durable column's agent, on the runtime's own SDK; loaded by name as ``tests.lab.agent:counter``.

Knows nothing of edges, journals and networks: that is the point. It puts itself together from ``LAB_*`` variables, as
an agent's module does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

from agent_runtime import Agent, ToolContext, ToolOutcomeUnknown, TurnContext, agent, tool
from tests.lab.errand import Errand, book_table
from tests.lab.ledger import Ledger


def make_counter(ledger: Ledger, word_seconds: float) -> Agent:
    """Return the agent."""

    @tool(replay_safety="unsafe", name="book_table")
    async def book(seconds: float, ctx: ToolContext) -> str:
        """Book a table."""
        return await book_table(ledger, ctx.session_id, seconds)

    @agent(name="counter", tools=[book])
    async def counter(ctx: TurnContext) -> None:
        errand = Errand.parse(ctx.input_text)
        for line in errand.before():
            await _say(ctx, line, word_seconds)
        try:
            booked = await ctx.call_tool(book, {"seconds": errand.tool_seconds})
            await ctx.say(f"Booked: {booked}.")
        except ToolOutcomeUnknown:
            await ctx.say("Nobody knows whether the table was booked. I do not book a second one.")
        for line in errand.after():
            await _say(ctx, line, word_seconds)

    return counter


async def _say(ctx: TurnContext, words: Iterable[str], word_seconds: float) -> None:
    async with ctx.message() as message:
        for word in words:
            await message.say(word)
            await asyncio.sleep(word_seconds)


if "LAB_LEDGER" in os.environ:  # absent where this module is only imported
    counter = make_counter(
        Ledger(Path(os.environ["LAB_LEDGER"])), float(os.environ["LAB_WORD_SECONDS"])
    )
