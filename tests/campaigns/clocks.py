"""Edges whose clocks are wrong share sessions with one that is right, over and over.

Knows nothing of how a clock is made wrong. Where libfaketime is not installed there is no such
campaign. Which checkpoint mode a plan asks for makes no difference to a clock, and is left out.
"""

from __future__ import annotations

from dataclasses import replace

from tests.campaigns.plan import Plan
from tests.campaigns.tally import Tally
from tests.faults.skew import live_by_wrong_clocks


async def clocks(plan: Plan) -> list[Tally]:
    """Set ``plan.cycles`` scenes of one right and three wrong edges, and judge all their sessions."""
    store = plan.name.partition(",")[0]
    row = Tally("processes", f"an hour ahead, an hour behind, twice as fast ({store})")
    for cycle in range(plan.cycles):
        async with replace(plan, folder=plan.folder / str(cycle)).scene() as scene:
            for history in await live_by_wrong_clocks(scene):
                row.judge(history)
        row.count += 1
        plan.tell(f"{row.fault}: {row.count} of {plan.cycles}")
    return [row]
