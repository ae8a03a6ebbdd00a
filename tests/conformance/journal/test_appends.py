"""Appends: all or nothing, each slot once, whoever comes second is told and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from edge.core.log import AnyRecord
from edge.journal.rules import RECORD_LIMIT_BYTES
from edge.ports import AppendRefused, AppendUnknown, Journal, SlotTaken, TurnEntry
from tests.support.journal_records import EDGE_B, acquire, cancel, events
from tests.support.journal_stores import Store

TURN = TurnEntry("t1", "sha256:1f", slot=2)


async def whole_log(journal: Journal) -> Sequence[AnyRecord]:
    return list((await journal.read("s1", after_slot=0, limit=1000)).records)


async def test_a_strong_read_of_another_edge_sees_an_acknowledged_append(store: Store) -> None:
    writer, reader = await store.open(), await store.open()
    for slot in range(1, 6):
        await writer.append("s1", [cancel(slot)])
        page = await reader.read("s1", after_slot=slot - 1, limit=10)
        assert list(page.records) == [cancel(slot)]


async def test_sessions_do_not_share_slots(journal: Journal) -> None:
    await journal.append("s1", [acquire(1)])
    await journal.append("s2", [acquire(1, writer=EDGE_B)])
    assert await whole_log(journal) == [acquire(1)]


@pytest.mark.proves("S41")
async def test_of_two_writers_at_one_slot_one_wins_and_the_other_reads_the_winner(
    store: Store,
) -> None:
    edges = [await store.open(), await store.open()]
    offers = [events(1, 1, data='"a"'), events(1, 1, data='"b"', writer=EDGE_B)]
    outcomes = await asyncio.gather(
        *(edge.append("s1", [offer]) for edge, offer in zip(edges, offers, strict=True)),
        return_exceptions=True,
    )
    losers = [i for i, outcome in enumerate(outcomes) if isinstance(outcome, SlotTaken)]
    assert len(losers) == 1
    assert outcomes[1 - losers[0]] is None
    assert await whole_log(edges[losers[0]]) == [offers[1 - losers[0]]]


async def test_two_writers_of_one_edge_race_like_two_edges(journal: Journal) -> None:
    offers = [cancel(1, turn_id=f"t{i}") for i in range(5)]
    outcomes = await asyncio.gather(
        *(journal.append("s1", [offer]) for offer in offers), return_exceptions=True
    )
    winners = [o for o, outcome in zip(offers, outcomes, strict=True) if outcome is None]
    assert len(winners) == 1
    assert sum(isinstance(outcome, SlotTaken) for outcome in outcomes) == 4
    assert await whole_log(journal) == winners


@pytest.mark.proves("S41")
async def test_a_late_append_meets_the_take_over_and_changes_nothing(store: Store) -> None:
    old, new = await store.open(), await store.open()
    await old.append("s1", [acquire(1), events(2, 1)])
    take_over = acquire(3, epoch=2, last_seq=1, writer=EDGE_B)
    await new.append("s1", [take_over])
    with pytest.raises(SlotTaken):
        await old.append("s1", [events(3, 2)])
    assert await whole_log(old) == [acquire(1), events(2, 1), take_over]


async def test_an_owner_meets_a_cancel_at_its_next_slot(store: Store) -> None:
    owner, other = await store.open(), await store.open()
    await owner.append("s1", [acquire(1)])
    await other.append("s1", [cancel(2)])
    with pytest.raises(SlotTaken):
        await owner.append("s1", [events(2, 1)])
    page = await owner.read("s1", after_slot=1, limit=1)
    assert list(page.records) == [cancel(2)]


async def test_a_repeated_append_is_told_so_and_finds_its_own_record(journal: Journal) -> None:
    await journal.append("s1", [events(1, 1, 3)])
    with pytest.raises(SlotTaken):
        await journal.append("s1", [events(1, 1, 3)])
    assert await whole_log(journal) == [events(1, 1, 3)]


async def test_an_unknown_outcome_that_was_applied_is_settled_by_reading_the_slot(
    store: Store,
) -> None:
    journal = await store.open()
    with pytest.raises(AppendUnknown):
        await store.append_and_lose_the_answer("s1", [events(1, 1)])
    assert await whole_log(journal) == [events(1, 1)]


async def test_an_unknown_outcome_that_lost_the_slot_is_settled_by_reading_the_slot(
    store: Store,
) -> None:
    journal = await store.open()
    await journal.append("s1", [cancel(1)])
    with pytest.raises(AppendUnknown):
        await store.append_and_lose_the_answer("s1", [events(1, 1)])
    assert await whole_log(journal) == [cancel(1)]


async def test_an_unknown_outcome_of_a_turn_is_all_there(store: Store) -> None:
    journal = await store.open()
    with pytest.raises(AppendUnknown):
        await store.append_and_lose_the_answer("s1", [acquire(1), events(2, 1)], TURN)
    assert await whole_log(journal) == [acquire(1), events(2, 1)]
    assert await journal.turn("s1", "t1") == TURN


async def test_a_turn_begins_with_its_acquire_its_event_and_its_entry(journal: Journal) -> None:
    assert await journal.turn("s1", "t1") is None
    await journal.append("s1", [acquire(1), events(2, 1)], TURN)
    assert await whole_log(journal) == [acquire(1), events(2, 1)]
    assert await journal.turn("s1", "t1") == TURN
    assert await journal.turn("s2", "t1") is None


async def test_a_turn_that_exists_is_not_begun_again(journal: Journal) -> None:
    await journal.append("s1", [acquire(1), events(2, 1)], TURN)
    with pytest.raises(SlotTaken):
        await journal.append("s1", [events(3, 2)], replace(TURN, body_hash="other", slot=3))
    assert await whole_log(journal) == [acquire(1), events(2, 1)]
    assert await journal.turn("s1", "t1") == TURN


@pytest.mark.parametrize("taken", [1, 2])
async def test_a_turn_whose_slot_is_taken_leaves_nothing(journal: Journal, taken: int) -> None:
    await journal.append("s1", [cancel(taken, turn_id="t0")])
    with pytest.raises(SlotTaken):
        await journal.append("s1", [acquire(1), events(2, 1)], TURN)
    assert await whole_log(journal) == [cancel(taken, turn_id="t0")]
    assert await journal.turn("s1", "t1") is None


async def test_the_same_turn_posted_to_two_edges_begins_once(store: Store) -> None:
    edges = [await store.open(), await store.open()]
    outcomes = await asyncio.gather(
        *(edge.append("s1", [acquire(1), events(2, 1)], TURN) for edge in edges),
        return_exceptions=True,
    )
    assert outcomes.count(None) == 1
    assert await whole_log(edges[0]) == [acquire(1), events(2, 1)]


async def test_fifty_contenders_write_one_contiguous_log(store: Store) -> None:
    edges = [await store.open(), await store.open()]

    async def contend(number: int) -> None:
        edge, last_slot = edges[number % 2], 0
        while True:
            try:
                await edge.append("s1", [cancel(last_slot + 1, turn_id=f"t{number}")])
            except SlotTaken:
                page = await edge.read("s1", last_slot, limit=1000)
                last_slot = page.records[-1].slot
            else:
                return

    await asyncio.gather(*(contend(number) for number in range(50)))
    log = await whole_log(edges[0])
    assert [record.slot for record in log] == list(range(1, 51))
    assert {getattr(record, "turn_id", "") for record in log} == {f"t{n}" for n in range(50)}


async def test_a_record_above_the_limit_is_refused_and_the_store_goes_on(journal: Journal) -> None:
    with pytest.raises(AppendRefused):
        await journal.append("s1", [events(1, 1, data="x" * RECORD_LIMIT_BYTES)])
    await journal.append("s1", [acquire(1)])
    assert await whole_log(journal) == [acquire(1)]


@pytest.mark.parametrize("count", [1, 8000])
async def test_a_record_just_below_the_limit_is_taken(journal: Journal, count: int) -> None:
    data = "x" * (RECORD_LIMIT_BYTES // count - 120 if count > 1 else RECORD_LIMIT_BYTES - 1000)
    record = events(1, 1, count, data=data)
    await journal.append("s1", [record])
    assert await whole_log(journal) == [record]


@pytest.mark.parametrize(
    "records",
    [
        [],
        [cancel(1), cancel(1)],
        [cancel(0)],
        [cancel(10_000_000_000)],
        [cancel(1, turn_id="\ud800")],
        [events(1, 1, count=0)],
        [replace(events(1, 1), epoch=2)],
        [cancel(1, expire_at_ms=0)],
        [cancel(1, last_seq=2**63)],
        [events(slot, 1, data="x" * 900_000) for slot in range(1, 5)],
    ],
    ids=[
        "nothing",
        "one slot twice",
        "slot 0",
        "slot of eleven digits",
        "lone surrogate",
        "no events",
        "events of another epoch",
        "no expiry",
        "number above 64 bits",
        "too large together",
    ],
)
async def test_what_no_store_could_hold_is_refused(
    journal: Journal, records: Sequence[AnyRecord]
) -> None:
    with pytest.raises(AppendRefused):
        await journal.append("s1", records)
    assert await whole_log(journal) == []


async def test_a_cancelled_caller_leaves_a_journal_that_works(journal: Journal) -> None:
    append = asyncio.create_task(journal.append("s1", [cancel(1)]))
    await asyncio.sleep(0)
    append.cancel()
    await asyncio.gather(append, return_exceptions=True)
    await journal.append("s1", [cancel(2)])
    assert cancel(2) in await whole_log(journal)
