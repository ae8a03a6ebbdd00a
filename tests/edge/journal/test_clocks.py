"""The stores whose clock is injected: ages and expiry, to the millisecond."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge.journal.memory import MemoryJournal
from edge.journal.sqlite import SqliteJournal
from edge.journal.sqlite_tables import SWEEP_GRACE_MS
from edge.ports import Journal, Renewal, TurnEntry
from tests.support.journal_records import ManualClock, cancel

HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite"])
async def journal(
    request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path
) -> AsyncIterator[Journal]:
    opened: Journal = MemoryJournal(clock)
    if request.param == "sqlite":
        opened = await SqliteJournal.open(tmp_path / "journal.db", clock)
    yield opened
    await opened.close()


async def test_ages_are_told_by_the_stores_clock(journal: Journal, clock: ManualClock) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.renew("s1", Renewal(1, 1))
    clock.advance(seconds=4)
    await journal.watch("s1")
    clock.advance(seconds=2.5)
    head = await journal.head("s1")
    assert head is not None
    assert (head.renewed_seconds_ago, head.watched_seconds_ago) == (6.5, 2.5)


@pytest.mark.parametrize("hours", [0.001, -1])
async def test_a_renewal_is_told_from_the_one_before_it_even_by_a_clock_that_went_back(
    journal: Journal, clock: ManualClock, hours: float
) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.renew("s1", Renewal(1, 1))
    before = await journal.head("s1")
    clock.advance(hours=hours)
    await journal.renew("s1", Renewal(1, 1))
    after = await journal.head("s1")
    assert before is not None
    assert after is not None
    assert before.renewed_at_ms != after.renewed_at_ms


async def test_a_clock_that_went_back_makes_nothing_younger_than_new(
    journal: Journal, clock: ManualClock
) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.watch("s1")
    clock.advance(hours=-1)
    head = await journal.head("s1")
    assert head is not None
    assert head.watched_seconds_ago == 0


async def test_a_record_is_absent_from_its_last_millisecond_on(
    journal: Journal, clock: ManualClock
) -> None:
    expiry = clock.ms + 10
    await journal.append("s1", [cancel(1, expire_at_ms=expiry)], TurnEntry("t1", "h", 1))
    clock.ms = expiry - 1
    assert await journal.locate("s1", 0) == 1
    assert await journal.turn("s1", "t1") is not None
    clock.ms = expiry
    assert await journal.locate("s1", 0) is None
    assert list((await journal.read("s1", 0, 10)).records) == []
    # Its key is taken for as long as it is stored, so it is told for as long.
    assert await journal.turn("s1", "t1") == TurnEntry("t1", "h", 1)


async def test_a_head_outlives_its_log_by_72_hours_and_each_renewal_refreshes_it(
    journal: Journal, clock: ManualClock
) -> None:
    await journal.create_session("s1", "uid-1")
    clock.advance(hours=95)
    await journal.renew("s1", Renewal(1, 1))
    clock.advance(hours=95)
    assert await journal.head("s1") is not None
    clock.advance(hours=1)
    assert await journal.head("s1") is None


async def test_sqlite_removes_what_expired_a_day_ago_as_it_appends(tmp_path: Path) -> None:
    clock = ManualClock()
    journal = await SqliteJournal.open(tmp_path / "journal.db", clock)
    expiry = clock.ms + HOUR_MS
    for slot in range(1, 21):
        entry = TurnEntry(f"t{slot}", "h", slot)
        await journal.append("old", [cancel(slot, expire_at_ms=expiry)], entry)
    clock.ms = expiry + SWEEP_GRACE_MS - 1
    await journal.append("new", [cancel(1)])
    assert await row_counts(journal) == (21, 20)
    clock.ms += 1
    for slot in (2, 3, 4):
        await journal.append("new", [cancel(slot)])
    assert await row_counts(journal) == (4, 0)
    await journal.close()


async def row_counts(journal: SqliteJournal) -> tuple[int, int]:
    row = await journal._reader.run(
        lambda db: db.execute(
            "SELECT (SELECT count(*) FROM log), (SELECT count(*) FROM turns)"
        ).fetchone()
    )
    return row[0], row[1]
