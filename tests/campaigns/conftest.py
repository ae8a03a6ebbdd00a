"""Plans as fixtures; where there is no emulator, what wants Firestore is skipped and said to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.campaigns.plan import Mode, Plan, StoreName

MakePlan = Callable[[StoreName, Mode, int], Plan]


@pytest.fixture
def make_plan(request: pytest.FixtureRequest, tmp_path: Path) -> MakePlan:
    """Return what makes a plan of so many cycles, in a folder of its own."""

    def make(store: StoreName, mode: Mode, cycles: int) -> Plan:
        emulator = request.getfixturevalue("emulator") if store == "firestore" else ""
        folder = tmp_path / f"{store}-{mode}"
        return Plan(folder=folder, cycles=cycles, store=store, emulator=emulator, mode=mode)

    return make
