"""The stores that the journal's contract is proved for, behind one handle.

A handle can open further journals on the same data, as another edge would, and can break the wire:
an append that is applied, and whose answer never comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import grpc.aio
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport

from edge.core.log import AnyRecord
from edge.journal.firestore import CHANNEL_OPTIONS, EMULATOR_METADATA, FirestoreJournal
from edge.journal.memory import MemoryJournal
from edge.journal.sqlite import SqliteJournal
from edge.ports import AppendUnknown, Journal, SlotTaken, TurnEntry
from tests.support.journal_records import ManualClock

HEAD_LIFE_HOURS = 24 + 72


class Store(Protocol):
    """One store with fresh data."""

    async def open(self) -> Journal:
        """Open a journal on the data; the store closes it at the end."""

    async def create_expired_session(self, session_id: str) -> None:
        """Leave behind the head of a session that nobody used for too long."""

    async def append_and_lose_the_answer(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        """Append so that the store applies it and the caller sees no answer."""

    async def close(self) -> None:
        """Close every journal that was opened."""


class MemoryStore:
    """Edges of one process share one object."""

    def __init__(self) -> None:
        self._clock = ManualClock()
        self._journal = MemoryJournal(self._clock)

    async def open(self) -> Journal:
        return self._journal

    async def create_expired_session(self, session_id: str) -> None:
        await self._journal.create_session(session_id, "uid-1")
        self._clock.advance(hours=HEAD_LIFE_HOURS)

    async def append_and_lose_the_answer(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        await _lose_the_answer(self._journal, session_id, records, turn)

    async def close(self) -> None:
        await self._journal.close()


class SqliteStore:
    """Each journal opens the file anew, as another process would."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._clock = ManualClock()
        self._opened: list[Journal] = []

    async def open(self) -> Journal:
        journal = await SqliteJournal.open(self._path, self._clock)
        self._opened.append(journal)
        return journal

    async def create_expired_session(self, session_id: str) -> None:
        await (await self.open()).create_session(session_id, "uid-1")
        self._clock.advance(hours=HEAD_LIFE_HOURS)

    async def append_and_lose_the_answer(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        await _lose_the_answer(await self.open(), session_id, records, turn)

    async def close(self) -> None:
        for journal in self._opened:
            await journal.close()


class FirestoreStore:
    """Each journal has its own channel to the emulator."""

    def __init__(self, host: str, project: str) -> None:
        self._host = host
        self._project = project
        self._opened: list[Journal] = []

    async def open(self) -> Journal:
        return self.open_with()

    def open_with(
        self,
        *interceptors: grpc.aio.ClientInterceptor,
        clock: ManualClock | None = None,
        **options: Any,
    ) -> FirestoreJournal:
        """Open a journal whose RPCs go through interceptors."""
        channel = grpc.aio.insecure_channel(
            self._host, options=CHANNEL_OPTIONS, interceptors=interceptors
        )
        journal = FirestoreJournal(
            FirestoreAsyncClient(transport=FirestoreGrpcAsyncIOTransport(channel=channel)),
            f"projects/{self._project}/databases/(default)",
            clock or ManualClock(),
            metadata=EMULATOR_METADATA,
            **options,
        )
        self._opened.append(journal)
        return journal

    async def create_expired_session(self, session_id: str) -> None:
        long_ago = self.open_with(clock=ManualClock(ms=1_000_000_000_000))
        await long_ago.create_session(session_id, "uid-1")

    async def append_and_lose_the_answer(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        await self.open_with(LostAnswers()).append(session_id, records, turn)

    async def close(self) -> None:
        for journal in self._opened:
            await journal.close()


class LostAnswers(grpc.aio.UnaryUnaryClientInterceptor):
    """Lets each unary call through, and drops its answer."""

    async def intercept_unary_unary(
        self,
        continuation: Callable[[Any, Any], Awaitable[Any]],
        client_call_details: grpc.aio.ClientCallDetails,
        request: Any,
    ) -> Any:
        with suppress(grpc.RpcError):
            await (await continuation(client_call_details, request))
        nothing = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(
            grpc.StatusCode.UNAVAILABLE, nothing, nothing, details="the answer was lost"
        )


async def _lose_the_answer(
    journal: Journal, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None
) -> None:
    with suppress(SlotTaken):
        await journal.append(session_id, records, turn)
    raise AppendUnknown("the answer was lost")
