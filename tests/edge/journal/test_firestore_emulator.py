"""Firestore with the official emulator: shared RPCs, races on the head, a server that dies."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from edge.core.errors import JournalUnavailable
from edge.journal.firestore import FirestoreJournal
from edge.journal.firestore_batches import BATCH_LIMIT_WRITES
from edge.journal.firestore_documents import Names, record_creation
from edge.ports import AppendRefused, Renewal, SlotTaken, TurnEntry
from tests.support.firestore_emulator import Emulator, fresh_project
from tests.support.journal_records import acquire, cancel, events
from tests.support.journal_stores import FirestoreStore

pytestmark = pytest.mark.emulator

POLL_SECONDS = 0.05


class Calls(grpc.aio.UnaryUnaryClientInterceptor):
    """Counts unary RPCs by name; may do something before each."""

    def __init__(self, before: Callable[[str], Awaitable[None]] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._before = before

    async def intercept_unary_unary(
        self,
        continuation: Callable[[Any, Any], Awaitable[Any]],
        client_call_details: grpc.aio.ClientCallDetails,
        request: Any,
    ) -> Any:
        method: Any = client_call_details.method  # typed as text, and bytes in fact
        name = method.rsplit(b"/", 1)[-1].decode()
        self.counts[name] += 1
        if self._before is not None:
            await self._before(name)
        return await continuation(client_call_details, request)


async def test_appends_that_are_ready_together_share_one_rpc(firestore: FirestoreStore) -> None:
    calls = Calls()
    journal = firestore.open_with(calls)
    await asyncio.gather(*(journal.append(f"s{n}", [events(1, 1, 5)]) for n in range(50)))
    assert calls.counts == {"BatchWrite": 1}
    assert [await journal.locate(f"s{n}", 5) for n in (0, 49)] == [1, 1]


async def test_a_batch_is_cut_at_its_limit(firestore: FirestoreStore) -> None:
    calls = Calls()
    journal = firestore.open_with(calls)
    count = BATCH_LIMIT_WRITES + 1
    await asyncio.gather(*(journal.append(f"s{n}", [cancel(1)]) for n in range(count)))
    assert calls.counts == {"BatchWrite": 2}


async def test_large_records_do_not_make_a_request_too_large(firestore: FirestoreStore) -> None:
    journal = firestore.open_with()
    record = events(1, 1, data="x" * 900_000)
    await asyncio.gather(*(journal.append(f"s{n}", [record]) for n in range(6)))
    assert [await journal.locate(f"s{n}", 1) for n in range(6)] == [1] * 6


async def test_in_a_batch_each_append_succeeds_or_fails_by_itself(
    firestore: FirestoreStore,
) -> None:
    journal = firestore.open_with()
    await journal.append("s3", [cancel(1)])
    outcomes = await asyncio.gather(
        *(journal.append(f"s{n}", [acquire(1)]) for n in range(6)), return_exceptions=True
    )
    assert [n for n, outcome in enumerate(outcomes) if isinstance(outcome, SlotTaken)] == [3]
    assert outcomes.count(None) == 5


async def test_one_document_that_spoils_a_request_takes_no_other_along(
    firestore: FirestoreStore,
) -> None:
    journal = firestore.open_with()
    names: Names = journal._names
    poison = record_creation(names.record("s1", 1), events(1, 1, data="x" * 1_100_000))
    outcomes = await asyncio.gather(
        journal.append("s0", [cancel(1)]),
        journal._batches.create(poison),
        journal.append("s2", [cancel(1)]),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), AppendRefused, type(None)]
    assert [await journal.locate(f"s{n}", 0) for n in (0, 1, 2)] == [1, None, 1]


async def test_two_appends_to_one_slot_do_not_share_a_request(firestore: FirestoreStore) -> None:
    calls = Calls()
    journal = firestore.open_with(calls)
    offers = [cancel(1, turn_id="t1"), cancel(1, turn_id="t2")]
    outcomes = await asyncio.gather(
        *(journal.append("s1", [offer]) for offer in offers), return_exceptions=True
    )
    assert sum(isinstance(outcome, SlotTaken) for outcome in outcomes) == 1
    assert calls.counts == {"BatchWrite": 2}


@pytest.mark.parametrize("sent", [False, True], ids=["before it is sent", "after it is sent"])
async def test_a_cancelled_caller_takes_no_other_append_along(
    firestore: FirestoreStore, sent: bool
) -> None:
    async def cancel_second(_: str) -> None:
        appends[1].cancel()

    journal = firestore.open_with(Calls(cancel_second))
    appends = [asyncio.create_task(journal.append(f"s{n}", [cancel(1)])) for n in range(3)]
    if not sent:
        await asyncio.sleep(0)
        appends[1].cancel()
    outcomes = await asyncio.gather(*appends, return_exceptions=True)
    assert outcomes[0] is None
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert outcomes[2] is None
    assert await journal.locate("s1", 0) == (1 if sent else None)


async def test_a_turn_begins_with_one_commit(firestore: FirestoreStore) -> None:
    calls = Calls()
    journal = firestore.open_with(calls)
    await journal.append("s1", [acquire(1), events(2, 1)], TurnEntry("t1", "h", 2))
    assert calls.counts == {"Commit": 1}


async def test_a_renewal_that_lost_a_race_is_tried_again(firestore: FirestoreStore) -> None:
    other = firestore.open_with()
    await other.create_session("s1", "uid-1")
    races = iter([True])

    async def watch_first(name: str) -> None:
        if name == "Commit" and next(races, False):
            await other.watch("s1")

    calls = Calls(watch_first)
    await firestore.open_with(calls).renew("s1", Renewal(1, 4))
    assert calls.counts == {"Commit": 2}
    head = await other.head("s1")
    assert head is not None
    assert (head.owner, head.last_slot) == ("uid-1", 4)
    assert head.watched_seconds_ago < 60


@pytest.mark.proves("S41")
async def test_a_renewal_that_lost_to_a_new_owner_is_dropped(firestore: FirestoreStore) -> None:
    new_owner = firestore.open_with()
    await new_owner.create_session("s1", "uid-1")
    races = iter([True])

    async def take_over_first(name: str) -> None:
        if name == "Commit" and next(races, False):
            await new_owner.renew("s1", Renewal(2, 9))

    old_owner = firestore.open_with(Calls(take_over_first))
    await old_owner.renew("s1", Renewal(1, 4))
    head = await new_owner.head("s1")
    assert head is not None
    assert (head.epoch, head.last_slot) == (2, 9)


async def test_a_head_that_never_rests_is_given_up_without_an_error(
    firestore: FirestoreStore,
) -> None:
    other = firestore.open_with()
    await other.create_session("s1", "uid-1")

    async def watch_first(name: str) -> None:
        await other.watch("s1")

    await firestore.open_with(Calls(watch_first)).renew("s1", Renewal(1, 4))
    head = await other.head("s1")
    assert head is not None
    assert head.last_slot == 0


@pytest.fixture
async def mortal(emulator_jar: Path, tmp_path: Path) -> AsyncIterator[Emulator]:
    """An emulator that the test may kill."""
    started = Emulator(emulator_jar, tmp_path / "emulator.log")
    await asyncio.to_thread(started.start)
    yield started
    started.kill()


@pytest.mark.realtime
async def test_a_server_that_dies_is_told_and_its_successor_is_found_by_the_same_journal(
    mortal: Emulator,
) -> None:
    store = FirestoreStore(mortal.host, fresh_project())
    journal = store.open_with()
    await journal.append("s1", [acquire(1)])
    mortal.kill()
    async with asyncio.timeout(10):
        for call in (journal.append("s1", [cancel(2)]), journal.head("s1"), journal.check()):
            with pytest.raises(JournalUnavailable):
                await call
    await asyncio.to_thread(mortal.start, mortal.port)
    async with asyncio.timeout(15):
        await answered(journal)
    await journal.append("s1", [acquire(1)])  # what the dead one held died with it
    await store.close()


async def answered(journal: FirestoreJournal) -> None:
    """Return once the journal answers."""
    while True:
        try:
            return await journal.check()
        except JournalUnavailable:
            await asyncio.sleep(POLL_SECONDS)
