"""Heads: created once, hints that only a newer owner replaces, gone when their time is up."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from edge.ports import Head, Journal, Renewal, SlotTaken
from tests.support.journal_records import acquire
from tests.support.journal_stores import Store

RUNNING = Renewal(epoch=2, last_slot=7)


async def test_an_unknown_session_has_no_head(journal: Journal) -> None:
    assert await journal.head("nobody") is None


async def test_a_new_session_has_an_owner_and_nothing_else(journal: Journal) -> None:
    await journal.create_session("s1", "uid-1")
    assert await journal.head("s1") == Head("uid-1", 0, 0, math.inf, 0, math.inf)


async def test_a_session_is_never_created_again(journal: Journal) -> None:
    await journal.create_session("s1", "uid-1")
    with pytest.raises(SlotTaken):
        await journal.create_session("s1", "uid-2")
    head = await journal.head("s1")
    assert head is not None
    assert head.owner == "uid-1"


async def test_a_renewal_stores_the_hints_and_the_time_and_leaves_the_owner(
    journal: Journal,
) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.renew("s1", RUNNING)
    head = await journal.head("s1")
    assert head is not None
    unstamped = replace(head, renewed_seconds_ago=0, renewed_at_ms=0)
    assert unstamped == Head("uid-1", 2, 7, 0, 0, math.inf)
    assert 0 <= head.renewed_seconds_ago < 60


async def test_a_renewal_has_a_stamp_that_stays_the_same_until_the_next_one(
    journal: Journal,
) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.renew("s1", RUNNING)
    first = await journal.head("s1")
    await journal.watch("s1")
    again = await journal.head("s1")
    assert first is not None
    assert again is not None
    assert 0 < first.renewed_at_ms == again.renewed_at_ms


@pytest.mark.proves("S41")
async def test_a_renewal_from_an_older_epoch_is_ignored(journal: Journal) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.renew("s1", RUNNING)
    await journal.renew("s1", Renewal(epoch=1, last_slot=99))
    head = await journal.head("s1")
    assert head is not None
    assert (head.epoch, head.last_slot) == (2, 7)


async def test_a_released_lease_looks_as_if_nobody_had_ever_renewed_it(journal: Journal) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.renew("s1", RUNNING)
    await journal.renew("s1", replace(RUNNING, last_slot=8, released=True))
    head = await journal.head("s1")
    assert head is not None
    assert (head.last_slot, head.renewed_seconds_ago) == (8, math.inf)


async def test_a_lease_that_was_released_can_be_renewed_again(journal: Journal) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.renew("s1", replace(RUNNING, released=True))
    await journal.renew("s1", RUNNING)
    head = await journal.head("s1")
    assert head is not None
    assert head.renewed_seconds_ago < 60


async def test_watching_stores_the_time_and_no_other_hint(journal: Journal) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.renew("s1", RUNNING)
    await journal.watch("s1")
    head = await journal.head("s1")
    assert head is not None
    assert head.watched_seconds_ago < 60
    assert (head.owner, head.epoch, head.last_slot) == ("uid-1", 2, 7)


async def test_a_missing_session_is_neither_renewed_nor_watched_into_being(
    journal: Journal,
) -> None:
    await journal.renew("s1", RUNNING)
    await journal.watch("s1")
    assert await journal.head("s1") is None
    await journal.create_session("s1", "uid-1")


async def test_an_append_does_not_touch_the_head(journal: Journal) -> None:
    await journal.create_session("s1", "uid-1")
    before = await journal.head("s1")
    await journal.append("s1", [acquire(1)])
    assert await journal.head("s1") == before


async def test_a_session_past_its_time_is_absent_and_stays_so(store: Store) -> None:
    await store.create_expired_session("s1")
    journal = await store.open()
    assert await journal.head("s1") is None
    await journal.renew("s1", RUNNING)
    await journal.watch("s1")
    assert await journal.head("s1") is None


async def test_a_session_past_its_time_is_not_created_again(store: Store) -> None:
    await store.create_expired_session("s1")
    journal = await store.open()
    with pytest.raises(SlotTaken):
        await journal.create_session("s1", "uid-2")


async def test_a_healthy_store_passes_its_check(journal: Journal) -> None:
    await journal.check()


async def test_a_journal_may_be_closed_twice(journal: Journal) -> None:
    await journal.create_session("s1", "uid-1")
    await journal.close()
    await journal.close()


async def test_closing_finishes_the_appends_that_were_asked_for(store: Store) -> None:
    journal = await store.open()
    appends = [asyncio.create_task(journal.append(f"s{n}", [acquire(1)])) for n in range(5)]
    await asyncio.sleep(0)
    await journal.close()
    assert await asyncio.gather(*appends) == [None] * 5


async def test_what_a_closed_journal_wrote_is_read_by_the_next(store: Store) -> None:
    first = await store.open()
    await first.create_session("s1", "uid-1")
    await first.append("s1", [acquire(1)])
    await first.close()
    second = await store.open()
    assert list((await second.read("s1", 0, 10)).records) == [acquire(1)]
