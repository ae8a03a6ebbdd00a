"""Deploys under load: every edge exits by itself in time, and no reader misses a word.

How long readers wait is measured by ``python -m tests.campaigns roll``, on a machine that has nothing
else to do; nothing here depends on it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.plan import Plan
from tests.campaigns.roll import roll

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(400)]


@pytest.mark.proves("S79", "T45", "P-SSE-15", "P-RUN-11", "P-HTTP-5")
async def test_ten_rolls_under_fifty_streams_break_no_promise(tmp_path: Path) -> None:
    tallies = await roll(Plan(folder=tmp_path, cycles=10))
    assert sum(tally.count for tally in tallies) == 10
    for tally in tallies:
        assert tally.gap_seconds
        assert tally.clean, tally.told
