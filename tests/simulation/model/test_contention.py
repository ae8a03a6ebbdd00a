"""A contender gets its slot although the owner keeps appending, because the owner leaves gaps."""

from __future__ import annotations

import random

import pytest

from edge.sessions.commands import CONTENTION_TRIES
from tests.simulation.model.contention import tries_needed

RACES = 300


def _races(gap_seconds: float, spread: float) -> list[int | None]:
    chance = random.Random(1)
    return [
        tries_needed(chance, gap_seconds=gap_seconds, spread=spread, tries=CONTENTION_TRIES)
        for _ in range(RACES)
    ]


@pytest.mark.parametrize("spread", [0.0, 0.3, 0.6])
def test_a_gap_of_100_ms_lets_a_contender_in(spread: float) -> None:
    assert None not in _races(0.100, spread)


def test_an_owner_that_leaves_no_gap_starves_a_contender() -> None:
    assert None in _races(0.0, 0.0)
