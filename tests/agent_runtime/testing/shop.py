"""A small agent that does a bit of everything, for the tests of the harness."""

from __future__ import annotations

from agent_runtime import TurnContext, agent, tool


@tool(replay_safety="read_only")
async def price(item: str) -> int:
    """Look a price up."""
    return 500


@tool(replay_safety="unsafe")
async def charge(cents: int) -> str:
    """Charge the card."""
    return f"receipt for {cents}"


@tool(approval=True)
def ship(item: str) -> bool:
    """Send it, once a person has allowed it."""
    return True


@tool(executor="client")
def pick(prompt: str) -> str:
    """Let the browser pick."""
    raise AssertionError("runs in the browser")


@agent(tools=[price, charge, ship, pick])
async def shop(ctx: TurnContext) -> None:
    """Sell what the input names."""
    await ctx.say("One moment.")
    cents = await ctx.call_tool(price, {"item": ctx.input_text})
    receipt = await ctx.call_tool(charge, {"cents": cents})
    await ctx.set_state("last", ctx.input_text)
    await ctx.say(receipt)
