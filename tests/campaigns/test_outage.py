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


@pytest.mark.proves("S09", "P-HTTP-15", "P-LOG-9", "P-SSE-14")
async def test_a_file_that_is_locked_for_a_while_costs_nobody_a_turn(tmp_path: Path) -> None:
    brief = Plan(folder=tmp_path / "brief", cycles=1)
    long = Plan(folder=tmp_path / "long", cycles=1, mode="suspend")
    for tallies in await asyncio.gather(outage(brief, 5), outage(long, 30)):
        assert_clean(tallies)


@pytest.mark.emulator
@pytest.mark.proves("S09", "P-HTTP-15", "P-LOG-9", "P-LOG-12", "P-SSE-14")
async def test_a_firestore_that_is_away_for_a_while_costs_nobody_a_turn(
    tmp_path: Path, emulator: str
) -> None:
    brief = Plan(folder=tmp_path / "brief", cycles=3, store="firestore", emulator=emulator)
    long = Plan(folder=tmp_path / "long", cycles=1, store="firestore", emulator=emulator, seed=3)
    for tallies in await asyncio.gather(outage(brief, 5), outage(long, 30)):
        assert_clean(tallies)
