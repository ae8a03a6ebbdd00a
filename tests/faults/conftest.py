"""Scenes as fixtures: on SQLite, and on both stores; their processes' logs go into the report."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest

from tests.faults.scene import Scene, Store
from tests.support.firestore_emulator import fresh_project
from tests.support.processes import Crew


@pytest.fixture(params=["sqlite", pytest.param("firestore", marks=pytest.mark.emulator)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A fresh journal in each store that edges of several processes can share."""
    if request.param == "sqlite":
        return Store(path=tmp_path / "journal.sqlite3")
    return Store(emulator=request.getfixturevalue("emulator"), project=fresh_project())


@pytest.fixture
async def scene(store: Store, tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene without processes yet; whatever it starts is killed at the end."""
    made = Scene(Crew(tmp_path), store)
    yield made
    await made.close()


@pytest.fixture
async def sqlite_scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene on SQLite only, where the store makes no difference."""
    made = Scene(Crew(tmp_path), Store(path=tmp_path / "journal.sqlite3"))
    yield made
    await made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of a failed test's processes."""
    report = yield
    fixtures = getattr(item, "funcargs", {})
    for scene in (value for value in fixtures.values() if isinstance(value, Scene)):
        if report.failed and report.when == "call":
            report.sections.append(("logs of the processes", scene.crew.logs()))
    return report
