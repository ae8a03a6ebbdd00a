"""A hundred edges killed with -9 while users are at work: every history is judged."""

from __future__ import annotations

import pytest

from tests.campaigns.conftest import MakePlan
from tests.campaigns.kill import kill
from tests.campaigns.plan import Mode, StoreName

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(300)]


@pytest.mark.proves("S05", "S35", "S36", "S40", "P-HTTP-5", "P-HTTP-11", "P-SSE-6", "P-SSE-11")
@pytest.mark.proves("P-LOG-1", "P-LOG-13", "P-EVT-1", "P-EVT-4", "P-RUN-4", "P-RUN-6")
@pytest.mark.parametrize(
    ("store", "mode", "cycles"),
    [
        ("sqlite", "hold", 40),
        ("sqlite", "suspend", 15),
        pytest.param("firestore", "hold", 30, marks=pytest.mark.emulator),
        pytest.param("firestore", "suspend", 15, marks=pytest.mark.emulator),
    ],
)
async def test_no_promise_dies_with_the_edges_that_made_it(
    make_plan: MakePlan, store: StoreName, mode: Mode, cycles: int
) -> None:
    (row,) = await kill(make_plan(store, mode, cycles))
    assert row.clean, row.told
    assert row.takeover_seconds, "no turn was taken over"
