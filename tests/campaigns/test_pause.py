"""Twenty edges stopped in their tracks beyond their lease while users are at work: every history is judged."""

from __future__ import annotations

import pytest

from tests.campaigns.conftest import MakePlan
from tests.campaigns.pause import pause
from tests.campaigns.plan import Mode, StoreName

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(300)]


@pytest.mark.proves("S41", "S42", "P-HTTP-5", "P-HTTP-11", "P-SSE-6", "P-EVT-1", "P-EVT-4")
@pytest.mark.proves("P-LOG-12", "P-RES-2", "P-RUN-3", "P-RUN-6")
@pytest.mark.parametrize(
    ("store", "mode", "cycles"),
    [
        ("sqlite", "suspend", 10),
        pytest.param("firestore", "hold", 10, marks=pytest.mark.emulator),
    ],
)
async def test_edges_that_slept_through_a_take_over_break_no_promise(
    make_plan: MakePlan, store: StoreName, mode: Mode, cycles: int
) -> None:
    (row,) = await pause(make_plan(store, mode, cycles))
    assert row.clean, row.told
