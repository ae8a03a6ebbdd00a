"""Stores that go away and come back, briefly and for longer than a lease, in every phase of a turn at once.

Ninety seconds, and many of them, are for ``python -m tests.campaigns outage``.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.campaigns.outage import outage
from tests.campaigns.plan import Plan
from tests.campaigns.tally import Tally

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(400)]


def assert_clean(tallies: list[Tally]) -> None:
    for tally in tallies:
        assert tally.clean, tally.told


@pytest.mark.proves("S09", "P-HTTP-15", "P-LOG-9")
async def test_a_store_that_is_away_for_a_moment_costs_nobody_a_turn(tmp_path: Path) -> None:
    assert_clean(await outage(Plan(folder=tmp_path, cycles=1, mode="suspend"), 5))


@pytest.mark.emulator
@pytest.mark.proves("S09", "P-HTTP-15", "P-LOG-9", "P-LOG-12", "P-SSE-14")
async def test_a_store_that_is_away_for_longer_than_a_lease_costs_nobody_a_turn(
    tmp_path: Path, emulator: str
) -> None:
    locked = Plan(folder=tmp_path / "locked", cycles=1)
    silent = Plan(
        folder=tmp_path / "silent", cycles=1, store="firestore", emulator=emulator, seed=3
    )
    flaky = Plan(folder=tmp_path / "flaky", cycles=2, store="firestore", emulator=emulator)
    # Side by side, because an outage is mostly waiting.
    outages = (outage(locked, 30), outage(silent, 30), outage(flaky, 5))
    for tallies in await asyncio.gather(*outages):
        assert_clean(tallies)
