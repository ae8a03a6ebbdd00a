"""SQLite: clear words when the file cannot be used, bounded waits, group commits, no leaks."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge.core.errors import JournalUnavailable
from edge.journal.sqlite import SqliteJournal
from edge.journal.sqlite_tables import SCHEMA_VERSION
from edge.journal.sqlite_threads import commit_group
from edge.ports import AppendUnknown, SlotTaken
from tests.support.journal_records import ManualClock, acquire, cancel, events


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
async def journal(path: Path) -> AsyncIterator[SqliteJournal]:
    opened = await SqliteJournal.open(path, ManualClock(), busy_timeout_seconds=0.05)
    yield opened
    await opened.close()


@pytest.fixture
def intruder(path: Path, journal: SqliteJournal) -> Iterator[sqlite3.Connection]:
    """Another program with the same file open."""
    db = sqlite3.connect(path, isolation_level=None)
    yield db
    db.close()


async def test_a_missing_folder_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailable) as caught:
        await SqliteJournal.open(tmp_path / "nowhere" / "journal.db", ManualClock())
    assert str(caught.value) == f"no folder {tmp_path / 'nowhere'} for the journal"


async def test_a_folder_in_the_files_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(JournalUnavailable, match="cannot open the journal"):
        await SqliteJournal.open(tmp_path, ManualClock())


def test_a_file_that_is_no_database_is_told_and_left_alone(path: Path) -> None:
    path.write_text("dear diary, " * 100)
    with pytest.raises(JournalUnavailable, match="file is not a database"):
        asyncio.run(SqliteJournal.open(path, ManualClock()))
    assert path.read_text().startswith("dear diary")


async def test_a_file_of_a_newer_program_is_refused_and_left_alone(
    journal: SqliteJournal, intruder: sqlite3.Connection, path: Path
) -> None:
    intruder.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    with pytest.raises(JournalUnavailable, match="it has schema 2, and this program knows 1"):
        await SqliteJournal.open(path, ManualClock())
    assert intruder.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION + 1,)


OPEN_AS_NOBODY = """
import asyncio, os, sys
from pathlib import Path
from edge.core.errors import JournalUnavailable
from edge.journal.sqlite import SqliteJournal
from tests.support.journal_records import ManualClock
if os.geteuid() == 0:
    os.setuid(65534)  # root may write to everything, so root ceases to be root
try:
    asyncio.run(SqliteJournal.open(Path(sys.argv[1]), ManualClock()))
except JournalUnavailable as error:
    print(error)
"""


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that everybody can get at; ``tmp_path`` is its user's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        Path(folder).chmod(0o755)


def open_as_nobody(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OPEN_AS_NOBODY, str(path)],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
def test_a_read_only_file_is_told_when_it_is_opened(public_folder: Path, folder_mode: int) -> None:
    path = public_folder / "journal.db"
    asyncio.run(open_and_close(path))
    path.chmod(0o444)
    public_folder.chmod(folder_mode)
    assert (
        open_as_nobody(path)
        == f"cannot use the journal {path}: attempt to write a readonly database\n"
    )


async def open_and_close(path: Path) -> None:
    await (await SqliteJournal.open(path, ManualClock())).close()


def test_a_folder_without_permission_is_told(public_folder: Path) -> None:
    public_folder.chmod(0o500 if os.geteuid() == 0 else 0)
    folder = public_folder / "deeper"
    assert open_as_nobody(folder / "journal.db") == f"no folder {folder} for the journal\n"


async def test_a_file_that_is_locked_at_the_start_is_waited_for(
    path: Path, journal: SqliteJournal, intruder: sqlite3.Connection
) -> None:
    intruder.execute("BEGIN IMMEDIATE")
    opening = asyncio.create_task(
        SqliteJournal.open(
            path, ManualClock(), busy_timeout_seconds=0.05, open_timeout_seconds=60.0
        )
    )
    _, waiting = await asyncio.wait({opening}, timeout=0.3)
    assert waiting
    intruder.execute("ROLLBACK")
    opened = await opening
    intruder.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalUnavailable, match="database is locked"):
        await opened.create_session("s2", "u1")  # from now on nobody is kept waiting as long
    intruder.execute("ROLLBACK")
    await opened.close()


async def test_a_new_file_that_another_process_is_making_is_waited_for(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        opening = asyncio.create_task(
            SqliteJournal.open(path, ManualClock(), open_timeout_seconds=60.0)
        )
        _, waiting = await asyncio.wait({opening}, timeout=0.3)
        assert waiting
        other.execute("ROLLBACK")
        await (await opening).close()


async def test_a_locked_file_is_waited_for_and_then_told(
    journal: SqliteJournal, intruder: sqlite3.Connection
) -> None:
    intruder.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalUnavailable, match="database is locked") as caught:
        await journal.append("s1", [acquire(1)])
    assert not isinstance(caught.value, AppendUnknown)  # it never began
    assert await journal.locate("s1", 0) is None  # readers do not wait
    intruder.execute("ROLLBACK")
    await journal.append("s1", [acquire(1)])


async def test_a_full_disk_is_told_and_survived(journal: SqliteJournal) -> None:
    def limit_pages(db: sqlite3.Connection) -> None:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count={pages}")

    await journal._writer._thread.run(limit_pages)
    with pytest.raises(JournalUnavailable, match="full"):
        await journal.append("s1", [events(1, 1, data="x" * 100_000)])
    await journal._writer._thread.run(lambda db: db.execute("PRAGMA max_page_count=100000"))
    await journal.append("s1", [acquire(1)])
    assert list((await journal.read("s1", 0, 10)).records) == [acquire(1)]


async def test_appends_that_are_ready_together_share_one_commit(journal: SqliteJournal) -> None:
    statements: list[str] = []
    await journal._writer._thread.run(lambda db: db.set_trace_callback(statements.append))
    await asyncio.gather(*(journal.append(f"s{n}", [acquire(1)]) for n in range(100)))
    await journal._writer._thread.run(lambda db: db.set_trace_callback(None))
    assert statements.count("COMMIT") == 1


async def test_one_refused_append_takes_no_other_along(journal: SqliteJournal) -> None:
    await journal.append("s5", [cancel(2)])
    outcomes = await asyncio.gather(
        *(journal.append(f"s{n}", [acquire(1), events(2, 1)]) for n in range(10)),
        return_exceptions=True,
    )
    assert [n for n, outcome in enumerate(outcomes) if isinstance(outcome, SlotTaken)] == [5]
    assert outcomes.count(None) == 9
    assert [await journal.locate(f"s{n}", 1) for n in range(10)] == [2] * 5 + [None] + [2] * 4
    assert list((await journal.read("s5", 0, 10)).records) == [cancel(2)]


async def test_a_bug_in_one_write_reaches_its_caller_and_leaves_no_transaction(
    journal: SqliteJournal, intruder: sqlite3.Connection
) -> None:
    with pytest.raises(ZeroDivisionError):
        await journal._writer.run(lambda _: 1 // 0)
    intruder.execute("BEGIN IMMEDIATE")
    intruder.execute("ROLLBACK")
    await journal.append("s1", [acquire(1)])


def test_a_commit_that_fails_leaves_the_outcome_unknown_and_no_transaction() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(
        "PRAGMA foreign_keys=ON; CREATE TABLE a (id INTEGER PRIMARY KEY);"
        "CREATE TABLE b (a REFERENCES a DEFERRABLE INITIALLY DEFERRED)"
    )
    outcomes = commit_group([lambda db: db.execute("INSERT INTO b VALUES (1)")] * 2, db)
    assert [type(outcome) for outcome in outcomes] == [AppendUnknown] * 2
    assert not db.in_transaction
    db.close()


async def test_a_caller_cancelled_while_its_append_runs_leaves_no_transaction(
    journal: SqliteJournal, intruder: sqlite3.Connection
) -> None:
    intruder.execute("BEGIN IMMEDIATE")  # holds the writer thread inside the append
    append = asyncio.create_task(journal.append("s1", [acquire(1)]))
    reached = asyncio.create_task(journal.append("s2", [acquire(1)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    append.cancel()
    with pytest.raises(asyncio.CancelledError):
        await append
    intruder.execute("ROLLBACK")
    await asyncio.gather(reached, return_exceptions=True)
    await journal.append("s3", [acquire(1)])
    intruder.execute("BEGIN IMMEDIATE")
    intruder.execute("ROLLBACK")


async def test_an_append_cancelled_before_its_turn_is_not_run(journal: SqliteJournal) -> None:
    append = asyncio.create_task(journal.append("s1", [acquire(1)]))
    await asyncio.sleep(0)
    append.cancel()
    await asyncio.gather(append, return_exceptions=True)
    await journal.append("s2", [acquire(1)])
    assert await journal.locate("s1", 0) is None


async def test_a_closed_journal_says_so(journal: SqliteJournal) -> None:
    await journal.close()
    for call in (journal.append("s1", [acquire(2)]), journal.head("s1")):
        with pytest.raises(JournalUnavailable, match="closed"):
            await call
