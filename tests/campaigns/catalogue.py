"""Every campaign by name, with the figures of a release.

Knows nothing of how one is run; a campaign is a plan that becomes tallies and notes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.campaigns.clocks import clocks
from tests.campaigns.crash_points import crash_points
from tests.campaigns.kill import kill
from tests.campaigns.leaks import leaks
from tests.campaigns.network import network
from tests.campaigns.outage import outage
from tests.campaigns.pause import pause
from tests.campaigns.plan import STORES, Plan
from tests.campaigns.roll import roll
from tests.campaigns.simulated import simulated
from tests.campaigns.tally import Tally
from tests.simulation.mutants import hunt_all
from tests.support.clocks import NOT_RUN, find_library

AWAY_SECONDS = (5.0, 30.0, 90.0)
SEEDS_FOR_ALL = 10_000
"""So many worlds meet every fault as often as it must be met."""


@dataclass(slots=True)
class Found:
    """What a campaign leaves."""

    tallies: Sequence[Tally] = ()
    notes: Sequence[str] = ()
    """Sentences that stand under the tables."""
    failures: Sequence[str] = ()
    """What went wrong and is no row of a table."""

    @property
    def clean(self) -> bool:
        something = bool(self.tallies or self.notes)
        return something and not self.failures and all(tally.clean for tally in self.tallies)


Run = Callable[[Plan], Coroutine[Any, Any, Found]]


@dataclass(frozen=True, slots=True)
class Campaign:
    """One command."""

    run: Run
    cycles: int
    """As for a release: faults of all stores and modes, or repetitions of the whole where docs/reliability.md says so."""
    stores: bool = True
    """Whether it wants an emulator."""


async def _sim(plan: Plan) -> Found:
    tally, summary = simulated(plan.cycles)
    plan.tell(summary.text())
    # A fault that never came up was not survived; by the hundred, rare ones may fail to come up.
    return Found([tally], failures=summary.missing() if plan.cycles >= SEEDS_FOR_ALL else [])


async def _mutants(plan: Plan) -> Found:
    fates = []
    for fate in hunt_all():
        plan.tell(str(fate))
        fates.append(fate)
    found = sum(fate.found for fate in fates)
    note = f"{found} of {len(fates)} mutants of the production code were found by the simulation."
    return Found(notes=[note], failures=[fate.name for fate in fates if not fate.found])


Part = Callable[[Plan], Awaitable[Sequence[Tally]]]


def _in_turn(campaign: Part) -> Run:
    """Return a campaign that deals its cycles out to every store and mode, one after the other."""

    async def run(plan: Plan) -> Found:
        return Found(await _one_by_one(campaign, plan.dealt()))

    return run


def _side_by_side(campaign: Part) -> Run:
    """The same, with both stores at a time: for what does not mind the company."""

    async def run(plan: Plan) -> Found:
        stores = [[part for part in plan.dealt() if part.store == name] for name in STORES]
        found = await asyncio.gather(*(_one_by_one(campaign, parts) for parts in stores))
        return Found([tally for tallies in found for tally in tallies])

    return run


async def _one_by_one(campaign: Part, plans: Sequence[Plan]) -> list[Tally]:
    return [tally for plan in plans for tally in await campaign(plan)]


async def _clocks(plan: Plan) -> Found:
    """Without a library that makes clocks wrong this is a failure: nothing was looked at."""
    if find_library() is None:
        return Found(failures=[NOT_RUN])
    parts = [replace(part, cycles=plan.cycles) for part in plan.dealt() if part.mode == "hold"]
    return Found(await _one_by_one(clocks, parts))


async def _leaks(plan: Plan) -> Found:
    """The embedded store alone: what is left behind is not the store's."""
    return Found(await leaks(plan))


async def _outage(plan: Plan) -> Found:
    """Take the store away for each time; the plans side by side, as most of it is waiting."""
    tallies: list[Tally] = []
    for seconds in AWAY_SECONDS:
        parts = [replace(p, folder=p.folder / f"{seconds:g}") for p in plan.dealt()]
        for found in await asyncio.gather(*(outage(part, seconds) for part in parts)):
            tallies += found
    return Found(tallies)


CAMPAIGNS: Mapping[str, Campaign] = {
    "sim": Campaign(_sim, 10_000, stores=False),
    "mutants": Campaign(_mutants, 1, stores=False),
    "kill": Campaign(_side_by_side(kill), 1_000),
    "pause": Campaign(_side_by_side(pause), 200),
    "roll": Campaign(_in_turn(roll), 100),
    "outage": Campaign(_outage, 10),  # of which Firestore is out of reach in each of its ways
    "crash-points": Campaign(_side_by_side(crash_points), 10),  # a share for each store and mode
    "clocks": Campaign(_clocks, 2),
    "leaks": Campaign(_leaks, 1_000),
    "network": Campaign(_side_by_side(network), 10),
}
