"""SQLite between processes: writers killed in the middle leave a whole prefix, and nobody waits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.core.log import Events
from edge.journal.sqlite import SqliteJournal
from tests.support.journal_records import ManualClock

pytestmark = pytest.mark.realtime


class Appender:
    """A running ``appender``."""

    def __init__(self, path: Path, writer: str) -> None:
        self.writer = writer
        self.acknowledged: list[int] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.edge.journal.appender", str(path), writer],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def wait_for(self, count: int) -> None:
        """Wait until so many further appends are acknowledged."""
        assert self._process.stdout is not None
        for _ in range(count):
            line = self._process.stdout.readline()
            assert line, "the appender ended by itself"
            self.acknowledged.append(int(line))

    def kill(self) -> None:
        """End it as a power cut would, and take in what it still said."""
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return
        self._process.kill()  # without effect on one that ended by itself
        self._process.wait(timeout=10)
        rest = self._process.stdout.read().splitlines(keepends=True)
        self._process.stdout.close()
        self.acknowledged += [int(line) for line in rest if line.endswith("\n")]


@pytest.fixture
def appenders() -> Iterator[list[Appender]]:
    started: list[Appender] = []
    yield started
    for appender in started:
        appender.kill()


async def test_processes_killed_in_mid_append_leave_every_acknowledged_record_whole(
    tmp_path: Path, appenders: list[Appender]
) -> None:
    path = tmp_path / "journal.db"
    appenders += [Appender(path, writer) for writer in ("A", "B")]
    for writer in ("C", "D", "E"):
        for running in appenders[-2:]:
            running.wait_for(10)
        appenders[-2].kill()
        appenders.append(Appender(path, writer))
    for running in appenders[-2:]:
        running.wait_for(10)
        running.kill()
    log = await whole_log(path)
    assert [record.slot for record in log] == list(range(1, len(log) + 1))
    assert all(record.events[0].data == record.writer * 500 for record in log)
    for appender in appenders:
        written = {record.slot for record in log if record.writer == appender.writer}
        assert len(appender.acknowledged) >= 10
        # One append may have been applied and its answer lost with its writer.
        assert len(written - set(appender.acknowledged)) <= 1
        assert set(appender.acknowledged) <= written


async def whole_log(path: Path) -> list[Events]:
    journal = await SqliteJournal.open(path, ManualClock())
    page = await journal.read("s1", 0, limit=1_000_000)
    await journal.close()
    return [record for record in page.records if isinstance(record, Events)]
