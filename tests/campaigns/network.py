"""Puts every toxic on every link, over and over, while users are at work: one row for each of both.

Knows nothing of how a trouble is staged.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.campaigns.plan import Plan
from tests.campaigns.tally import Tally, total
from tests.faults.links import SETTINGS, Episode, every_trouble
from tests.support.history import Kind, Violation

NODES = 5


async def network(plan: Plan) -> list[Tally]:
    """Stage each trouble ``plan.cycles`` times, and judge every session that met it."""
    rows: list[Tally] = []
    chance = plan.chance()
    async with plan.scene() as scene:
        await scene.set(NODES, shape="shared", wired=True, **plan.settings(), **SETTINGS)
        for cycle in range(plan.cycles):
            rows = total([*rows, *rows_of(await every_trouble(scene, chance), plan.name)])
            plan.tell(f"every toxic on every link ({plan.name}): {cycle + 1} of {plan.cycles}")
    return rows


def rows_of(episodes: Iterable[Episode], name: str) -> Iterable[Tally]:
    """Yield what each episode adds to its row. Whoever waited in vain counts as a broken promise."""
    for episode in episodes:
        row = Tally("network", f"{episode.name} ({name})", count=int(episode.staged))
        for history in episode.histories:
            row.judge(history)
        row.accuse(Violation(Kind.OTHER, failure) for failure in episode.failures)
        yield row
