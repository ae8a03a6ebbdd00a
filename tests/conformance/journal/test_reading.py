"""Reads: pages in slot order, places found by seq, the expired unseen, everything as it was written."""

from __future__ import annotations

import pytest

from edge.core.event import Event
from edge.core.log import Acquire, AnyRecord, Events, LogView
from edge.ports import Journal, TurnEntry
from tests.support.journal_records import (
    LIVE_MS,
    LONG_AGO_MS,
    acquire,
    cancel,
    events,
    resolve,
)

HOSTILE_TEXTS = {
    "empty": "",
    "newlines": "a\rb\nc\r\nd",
    "separators": "a\u2028b\u2029c\u0085d",
    "nul": "a\x00b",
    "emoji": "\N{FACE WITH TEARS OF JOY}\N{ZERO WIDTH JOINER}\N{COMBINING ACUTE ACCENT}",
    "quotes": "'; DROP TABLE log; --\"\\",
    "large": "\N{EURO SIGN}" * 70_000,
}


async def fill(journal: Journal, slots: int) -> None:
    """Write ``slots`` records, three events each."""
    for slot in range(1, slots + 1):
        await journal.append("s1", [events(slot, 3 * slot - 2, 3)])


async def slots_of(journal: Journal, after_slot: int, limit: int) -> tuple[list[int], bool]:
    page = await journal.read("s1", after_slot, limit)
    return [record.slot for record in page.records], page.more


async def test_an_unknown_session_has_an_empty_log(journal: Journal) -> None:
    assert await slots_of(journal, 0, 10) == ([], False)
    assert await journal.locate("s1", 1) is None
    assert await journal.turn("s1", "t1") is None


@pytest.mark.parametrize(
    ("after_slot", "limit", "expected"),
    [
        (0, 4, ([1, 2, 3, 4], True)),
        (0, 5, ([1, 2, 3, 4, 5], False)),
        (0, 6, ([1, 2, 3, 4, 5], False)),
        (3, 1, ([4], True)),
        (4, 1, ([5], False)),
        (5, 1, ([], False)),
        (99, 1, ([], False)),
    ],
)
async def test_a_page_is_cut_at_its_limit_and_says_whether_there_is_more(
    journal: Journal, after_slot: int, limit: int, expected: tuple[list[int], bool]
) -> None:
    await fill(journal, 5)
    assert await slots_of(journal, after_slot, limit) == expected


async def test_slots_are_ordered_as_numbers(journal: Journal) -> None:
    for slot in (10, 9, 100, 11, 99):
        await journal.append("s1", [cancel(slot)])
    assert await slots_of(journal, 0, 10) == ([9, 10, 11, 99, 100], False)


async def test_a_hole_shows_as_a_jump(journal: Journal) -> None:
    await journal.append("s1", [cancel(1)])
    await journal.append("s1", [cancel(3)])
    assert await slots_of(journal, 0, 10) == ([1, 3], False)


@pytest.mark.parametrize(
    ("seq", "slot"), [(0, 1), (1, 1), (3, 1), (4, 2), (5, 2), (9, 3), (10, None)]
)
async def test_a_seq_is_located_in_the_record_that_holds_it(
    journal: Journal, seq: int, slot: int | None
) -> None:
    await fill(journal, 3)
    assert await journal.locate("s1", seq) == slot


async def test_the_first_of_several_records_with_a_seq_is_located(journal: Journal) -> None:
    await journal.append("s1", [acquire(1), events(2, 1, 3)])
    await journal.append("s1", [cancel(3, last_seq=3)])
    await journal.append("s1", [cancel(4, last_seq=3)])
    assert await journal.locate("s1", 3) == 2


async def test_an_expired_prefix_is_absent(journal: Journal) -> None:
    for slot in range(1, 8):
        await journal.append("s1", [events(slot, slot, expire_at_ms=LONG_AGO_MS)])
    await journal.append("s1", [events(8, 8)])
    await journal.append("s1", [events(9, 9)])
    assert await slots_of(journal, 0, 1) == ([8], True)
    assert await slots_of(journal, 0, 2) == ([8, 9], False)
    assert await slots_of(journal, 5, 9) == ([8, 9], False)
    assert [await journal.locate("s1", seq) for seq in (1, 7, 8, 9, 10)] == [8, 8, 8, 9, None]


async def test_a_log_that_expired_whole_is_empty(journal: Journal) -> None:
    for slot in (1, 2, 3):
        await journal.append("s1", [cancel(slot, expire_at_ms=LONG_AGO_MS)])
    assert await slots_of(journal, 0, 1) == ([], False)
    assert await slots_of(journal, 0, 3) == ([], False)
    assert await journal.locate("s1", 0) is None


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS.keys())
async def test_any_text_comes_back_as_it_went_in(journal: Journal, text: str) -> None:
    event = Event(1, 1, "custom", text, subject=text[:100], private=text[:100], at_ms=1)
    record = Events(
        slot=1,
        epoch=1,
        writer=text[:100],
        last_seq=1,
        expire_at_ms=LIVE_MS,
        acquire_slot=1,
        events=(event,),
    )
    written: list[AnyRecord] = [
        record,
        cancel(2, turn_id=text[:1000]),
        resolve(3, decision=text),
    ]
    for each in written:
        await journal.append("s1", [each])
    assert list((await journal.read("s1", 0, 10)).records) == written


async def test_an_owner_and_a_turn_may_have_any_name(journal: Journal) -> None:
    hostile = HOSTILE_TEXTS["newlines"] + HOSTILE_TEXTS["quotes"] + HOSTILE_TEXTS["emoji"]
    await journal.create_session("s1", hostile)
    entry = TurnEntry("t-1_~.", hostile, slot=1)
    await journal.append("s1", [cancel(1)], entry)
    head = await journal.head("s1")
    assert head is not None
    assert head.owner == hostile
    assert await journal.turn("s1", "t-1_~.") == entry


async def test_an_event_keeps_its_class_and_its_time(journal: Journal) -> None:
    tokens = Event(3, 4, "token", "{}", structural=False, at_ms=1_800_000_000_123)
    ending = Event(3, 5, "done", "{}", private='{"usage":1}', at_ms=0)
    record = Events(
        slot=9,
        epoch=3,
        writer="w",
        last_seq=5,
        expire_at_ms=LIVE_MS + 1,
        acquire_slot=7,
        events=(tokens, ending),
    )
    await journal.append("s1", [record])
    assert list((await journal.read("s1", 0, 1)).records) == [record]


async def test_an_acquire_keeps_the_order_of_its_epoch_starts(journal: Journal) -> None:
    starts = tuple((epoch, 5 * epoch) for epoch in range(90, 154))
    record = Acquire(
        slot=1,
        epoch=153,
        writer="w",
        last_seq=764,
        expire_at_ms=LIVE_MS,
        epoch_starts=starts,
    )
    await journal.append("s1", [record])
    assert list((await journal.read("s1", 0, 1)).records) == [record]


async def test_what_is_read_folds_into_a_view_of_the_log(journal: Journal) -> None:
    await journal.append("s1", [acquire(1), events(2, 1, 2)], TurnEntry("t1", "h", 2))
    await journal.append("s1", [cancel(3, last_seq=2)])
    view = LogView()
    for record in (await journal.read("s1", 0, 10)).records:
        view.apply(record)
    assert (view.last_slot, view.last_seq, view.epoch, view.first_seq) == (3, 2, 1, 1)
