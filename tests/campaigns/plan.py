"""What a campaign is told: how often, where, on which store; and the scenes that it may set.

Knows nothing of faults.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.faults.scene import Scene, Store
from tests.support.firestore_emulator import fresh_project
from tests.support.processes import Crew

StoreName = Literal["sqlite", "firestore"]


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
    mode: Literal["hold", "suspend"] = "hold"
    tell: Callable[[str], None] = tell_nobody
    """Hears one line now and then, so that a long run is seen to go on."""

    @property
    def name(self) -> str:
        """How the store and the checkpoint mode are called in a table."""
        return f"{'SQLite' if self.store == 'sqlite' else 'Firestore'}, {self.mode}"

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
