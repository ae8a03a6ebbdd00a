"""Twenty edges stopped in their tracks beyond their lease while users are at work: every history is judged."""

from __future__ import annotations

import asyncio

import pytest

from tests.campaigns.conftest import Dealt
from tests.campaigns.pause import pause

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(300)]

CYCLES = 20


@pytest.mark.proves("S41", "S42", "P-HTTP-5", "P-HTTP-11", "P-SSE-6", "P-EVT-1", "P-EVT-4")
@pytest.mark.proves("P-LOG-12", "P-RUN-6")
async def test_edges_that_slept_through_a_take_over_break_no_promise(dealt: Dealt) -> None:
    rows = [row for (row,) in await asyncio.gather(*map(pause, dealt(CYCLES)))]
    for row in rows:
        assert row.clean, row.told
    # Of three pauses all may meet an edge that runs no turn just then; of twenty not.
    assert any(row.takeover_seconds for row in rows), "no sleeper was taken over"
