"""A hundred edges killed with -9 while users are at work: every history is judged.

How long a take-over lasts is measured by ``python -m tests.campaigns kill``, on a machine that has nothing
else to do; nothing here depends on it.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.campaigns.conftest import Dealt
from tests.campaigns.kill import kill

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(500)]

CYCLES = 100


@pytest.mark.proves("S05", "S35", "S36", "S40", "P-HTTP-5", "P-HTTP-11", "P-SSE-6", "P-SSE-11")
@pytest.mark.proves("P-LOG-13", "P-EVT-1", "P-EVT-4", "P-RUN-4", "P-RUN-6")
@pytest.mark.parametrize("mode", ["hold", "suspend"])
async def test_no_promise_dies_with_the_edges_that_made_it(dealt: Dealt, mode: str) -> None:
    plans = [plan for plan in dealt(CYCLES) if plan.mode == mode]
    for (row,) in await asyncio.gather(*map(kill, plans)):
        assert row.clean, row.told
        assert row.takeover_seconds, "no turn was taken over"
