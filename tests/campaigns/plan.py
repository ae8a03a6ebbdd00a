"""What a campaign is told: how often, where, on which store; and the scenes that it may set.

Knows nothing of faults.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from tests.faults.scene import Scene, Store
from tests.support.firestore_emulator import fresh_project
from tests.support.processes import Crew

StoreName = Literal["sqlite", "firestore"]
Mode = Literal["hold", "suspend"]
STORES: Sequence[StoreName] = get_args(StoreName)

SHARES: Sequence[tuple[StoreName, Mode, float]] = (
    ("sqlite", "hold", 0.4),
    ("firestore", "hold", 0.3),
    ("sqlite", "suspend", 0.15),
    ("firestore", "suspend", 0.15),
)
"""How a campaign's cycles are dealt out to the stores and checkpoint modes."""


def tell_nobody(_line: str) -> None:
    """The default ear of a campaign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One campaign on one store."""

    folder: Path
    """Where its processes run and leave their logs."""
    cycles: int
    """How often the fault is staged."""
    seed: int = 1
    store: StoreName = "sqlite"
    emulator: str = ""
    """``host:port`` of the Firestore emulator, if that is the store."""
    mode: Mode = "hold"
    tell: Callable[[str], None] = tell_nobody
    """Hears one line now and then, so that a long run is seen to go on."""

    @property
    def name(self) -> str:
        """How the store and the checkpoint mode are called in a table."""
        return f"{'SQLite' if self.store == 'sqlite' else 'Firestore'}, {self.mode}"

    def dealt(self) -> list[Plan]:
        """Return plans for each store and mode; together they have this one's cycles.

        Without an emulator SQLite takes them all.
        """
        there = [share for share in SHARES if self.emulator or share[0] == "sqlite"]
        whole = sum(part for _, _, part in there)
        plans, left = [], self.cycles
        for store, mode, part in there:
            last = (store, mode) == there[-1][:2]
            cycles = left if last else min(left, max(1, round(self.cycles * part / whole)))
            left -= cycles
            folder = self.folder / f"{store}-{mode}"
            plans.append(replace(self, folder=folder, cycles=cycles, store=store, mode=mode))
        return [plan for plan in plans if plan.cycles]

    def chance(self) -> random.Random:
        """Return this plan's own dice. What happens when is still up to the machine."""
        return random.Random(f"{self.seed}/{self.name}")

    @asynccontextmanager
    async def scene(self) -> AsyncIterator[Scene]:
        """Make a scene without processes; whatever it starts is killed at the end."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.store == "sqlite":
            store = Store(path=self.folder / "journal.sqlite3")
        else:
            store = Store(emulator=self.emulator, project=fresh_project())
        scene = Scene(Crew(self.folder), store)
        try:
            yield scene
        finally:
            await scene.close()

    def settings(self) -> dict[str, str]:
        """Return the edge settings that this plan asks for."""
        return {"EDGE_CHECKPOINT_MODE": self.mode}
