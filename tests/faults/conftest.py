"""Scenes as fixtures: on SQLite, and on both stores; their processes' logs go into the report.

``standing`` is for tests that break nothing: its processes serve all of them. A ``scene`` is a
test's own, to be killed, paused and cut off; as each start takes seconds, the fast suite does so on
SQLite, and ``make test-realtime`` on Firestore too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest

from tests.faults.scene import Scene, Store
from tests.support.firestore_emulator import fresh_project
from tests.support.processes import Crew

ON_SQLITE = "sqlite"
ON_FIRESTORE = pytest.param("firestore", marks=pytest.mark.emulator)
ON_FIRESTORE_LATER = pytest.param("firestore", marks=[pytest.mark.emulator, pytest.mark.realtime])


def make_store(request: pytest.FixtureRequest, folder: Path) -> Store:
    """Return a fresh journal in the store that the fixture is parametrised with."""
    if request.param == ON_SQLITE:
        return Store(path=folder / "journal.sqlite3")
    return Store(emulator=request.getfixturevalue("emulator"), project=fresh_project())


@pytest.fixture(params=[ON_SQLITE, ON_FIRESTORE], scope="session")
def standing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Two edges with a runtime each, started once for each store."""
    folder = tmp_path_factory.mktemp("standing")
    scene = Scene(Crew(folder), make_store(request, folder))
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(scene.set(2))
        yield scene
    finally:
        loop.run_until_complete(scene.close())
        loop.close()


@pytest.fixture(params=[ON_SQLITE, ON_FIRESTORE_LATER])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene without processes yet; whatever it starts is killed at the end."""
    made = Scene(Crew(tmp_path), make_store(request, tmp_path))
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
