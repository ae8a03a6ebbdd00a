"""Firestore without a server: what each status means, deadlines, and that nothing is tried twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import grpc.aio
import pytest
from google.auth.credentials import AnonymousCredentials, Credentials
from grpc import StatusCode

from edge.core.errors import JournalUnavailable
from edge.core.log import AnyRecord
from edge.journal.firestore import FirestoreJournal
from edge.journal.firestore_documents import Names, head_creation, head_renewal
from edge.ports import AppendRefused, AppendUnknown, Journal, Renewal, SlotTaken, TurnEntry
from tests.support.journal_records import ManualClock, acquire, cancel, events
from tests.support.journal_stores import FirestoreStore

UNKNOWN_STATUSES = [
    status
    for status in StatusCode
    if status not in (StatusCode.OK, StatusCode.ALREADY_EXISTS, StatusCode.INVALID_ARGUMENT)
]

Append = tuple[Sequence[AnyRecord], TurnEntry | None]

ONE: Append = ([cancel(1)], None)
SEVERAL: Append = ([acquire(1), events(2, 1)], TurnEntry("t1", "h", 2))


class Refusals(grpc.aio.UnaryUnaryClientInterceptor):
    """Answers each unary call with one status, and counts them."""

    def __init__(self, status: StatusCode) -> None:
        self._status = status
        self.calls = 0

    async def intercept_unary_unary(
        self,
        continuation: Callable[[Any, Any], Awaitable[Any]],
        client_call_details: grpc.aio.ClientCallDetails,
        request: Any,
    ) -> Any:
        self.calls += 1
        nothing = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(self._status, nothing, nothing, details="refused")


@pytest.fixture
async def nowhere() -> AsyncIterator[FirestoreStore]:
    """A store at an address where nobody listens."""
    store = FirestoreStore("127.0.0.1:1", "p")
    yield store
    await store.close()


@pytest.fixture
async def silence() -> AsyncIterator[FirestoreStore]:
    """A store at an address that accepts connections and never says a word."""
    writers: list[asyncio.StreamWriter] = []

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    store = FirestoreStore(f"127.0.0.1:{port}", "p")
    yield store
    await store.close()
    for writer in writers:
        writer.close()
    server.close()


@pytest.mark.parametrize("status", UNKNOWN_STATUSES)
@pytest.mark.parametrize("append", [ONE, SEVERAL], ids=["one", "several"])
async def test_any_other_failure_leaves_the_outcome_unknown_and_is_not_retried(
    nowhere: FirestoreStore, status: StatusCode, append: Append
) -> None:
    refusals = Refusals(status)
    with pytest.raises(AppendUnknown):
        await nowhere.open_with(refusals).append("s1", *append)
    assert refusals.calls == 1


@pytest.mark.parametrize("append", [ONE, SEVERAL], ids=["one", "several"])
async def test_an_invalid_argument_refuses_for_good(
    nowhere: FirestoreStore, append: Append
) -> None:
    with pytest.raises(AppendRefused):
        await nowhere.open_with(Refusals(StatusCode.INVALID_ARGUMENT)).append("s1", *append)


async def test_an_existing_document_takes_the_slot(nowhere: FirestoreStore) -> None:
    journal = nowhere.open_with(Refusals(StatusCode.ALREADY_EXISTS))
    with pytest.raises(SlotTaken):
        await journal.append("s1", *SEVERAL)
    with pytest.raises(SlotTaken):
        await journal.create_session("s1", "uid-1")


@pytest.mark.parametrize(
    "call",
    [
        lambda journal: journal.check(),
        lambda journal: journal.head("s1"),
        lambda journal: journal.read("s1", 0, 10),
        lambda journal: journal.locate("s1", 1),
        lambda journal: journal.turn("s1", "t1"),
        lambda journal: journal.renew("s1", Renewal(1, 1)),
        lambda journal: journal.watch("s1"),
        lambda journal: journal.create_session("s1", "uid-1"),
        lambda journal: journal.append("s1", *ONE),
        lambda journal: journal.append("s1", *SEVERAL),
    ],
    ids=[
        "check",
        "head",
        "read",
        "locate",
        "turn",
        "renew",
        "watch",
        "create_session",
        "append-1",
        "append-n",
    ],
)
async def test_a_server_that_never_answers_is_given_up_at_the_deadline(
    silence: FirestoreStore, call: Callable[[Journal], Awaitable[object]]
) -> None:
    journal = silence.open_with(read_timeout_seconds=0.05, write_timeout_seconds=0.05)
    async with asyncio.timeout(10):
        with pytest.raises(JournalUnavailable):
            await call(journal)


async def test_closing_waits_for_what_is_under_way(silence: FirestoreStore) -> None:
    journal = silence.open_with(write_timeout_seconds=0.05)
    append = asyncio.create_task(journal.append("s1", *ONE))
    await asyncio.sleep(0)
    await journal.close()
    with pytest.raises(AppendUnknown):
        await append
    with pytest.raises(JournalUnavailable, match="closed"):
        await journal.append("s1", *ONE)


async def test_a_journal_for_production_needs_no_network_to_be_made() -> None:
    nobody: Credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]
    journal = FirestoreJournal.connect(
        ManualClock(), project="p", database="edge", credentials=nobody
    )
    await journal.close()


def test_a_renewal_never_touches_the_owner_and_never_shortens_a_life() -> None:
    head = head_creation(Names("projects/p/databases/d").head("s1"), "uid-1", 9_000).update
    write = head_renewal(head, Renewal(3, 9), 5_000)
    assert "owner" not in write.update_mask.field_paths
    assert "owner" not in write.update.fields
    assert write.update.fields["expire_at"].timestamp_value.ToMilliseconds() == 9_000
