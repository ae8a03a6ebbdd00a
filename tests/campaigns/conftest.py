"""The plan of a test, as the command would make it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.campaigns.plan import Plan

Dealt = Callable[[int], list[Plan]]


@pytest.fixture
def dealt(request: pytest.FixtureRequest, tmp_path: Path) -> Dealt:
    """Return what deals so many cycles out to the stores that there are, in both modes.

    Other tests say so where there is no emulator.
    """
    emulator = ""
    with suppress(pytest.skip.Exception):
        emulator = request.getfixturevalue("emulator")
    return lambda cycles: Plan(folder=tmp_path, cycles=cycles, emulator=emulator).dealt()
