"""Plans deal their cycles out to stores and modes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.plan import Plan


@pytest.mark.parametrize("cycles", [1, 2, 3, 5, 10, 100, 999])
@pytest.mark.parametrize("emulator", ["", "127.0.0.1:1"])
def test_no_cycle_is_lost_on_the_way_to_the_stores(cycles: int, emulator: str) -> None:
    dealt = Plan(folder=Path("x"), cycles=cycles, emulator=emulator).dealt()
    assert sum(plan.cycles for plan in dealt) == cycles
    assert len({plan.folder for plan in dealt}) == len(dealt)
    assert (dealt[0].store, dealt[0].mode) == ("sqlite", "hold")


def test_every_store_and_mode_has_its_share() -> None:
    dealt = Plan(folder=Path("x"), cycles=100, emulator="127.0.0.1:1").dealt()
    assert {plan.name: plan.cycles for plan in dealt} == {
        "SQLite, hold": 40,
        "Firestore, hold": 30,
        "SQLite, suspend": 15,
        "Firestore, suspend": 15,
    }


def test_without_an_emulator_sqlite_takes_all() -> None:
    assert {plan.store for plan in Plan(folder=Path("x"), cycles=100).dealt()} == {"sqlite"}
