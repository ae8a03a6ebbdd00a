"""Nothing but stamps may show whose clock was wrong."""

from __future__ import annotations

import pytest

from tests.faults.scene import Scene
from tests.faults.skew import live_by_wrong_clocks
from tests.support.clocks import NOT_RUN, find_library

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.skipif(find_library() is None, reason=NOT_RUN),
]


@pytest.mark.proves("P-LOG-13", "P-LOG-14")
async def test_edges_with_wrong_clocks_break_no_promise(scene: Scene) -> None:
    assert await live_by_wrong_clocks(scene)
