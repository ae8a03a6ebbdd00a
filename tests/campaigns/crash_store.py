"""The stores of the crash points: each run gets a fresh one, and every edge its own way to it.

Knows nothing of faults. A ``Witness`` stands between an edge's faults and the store: what passes it is
durable, and while it waits for the store, virtual time stands still.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from edge.core.event import TOOL_START, TURN_START, Event
from edge.core.log import AnyRecord, Cancel, Events
from edge.journal.firestore import FirestoreJournal
from edge.journal.memory import MemoryJournal
from edge.journal.sqlite import SqliteJournal
from edge.ports import Head, Journal, Page, Renewal, TurnEntry
from tests.support.firestore_emulator import fresh_project
from tests.support.history import Kind, Violation
from tests.support.house import LoopClock
from tests.support.io_loop import real_io

T = TypeVar("T")
Connect = Callable[[], Awaitable[Journal]]


@dataclass(slots=True)
class Seen:
    """What is known of a store's content, by anybody."""

    events: set[tuple[int, int]] = field(default_factory=set)
    """Epoch and seq of every event that is durable."""
    tool_keys: set[str] = field(default_factory=set)
    """Idempotency keys of every ``tool_start`` among them."""
    attempts: set[tuple[str, int]] = field(default_factory=set)
    """Turn id and number of every attempt that is."""
    cancels: set[str] = field(default_factory=set)
    """Turn ids of every cancel that is."""
    last_slot: int = 0
    """Of the newest record that is."""
    renewals: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Epoch and virtual time of each session's newest renewal."""

    found: list[Violation] = field(default_factory=list)
    """What happened before the record that allows it was durable."""

    def expect(self, *, durable: bool, what: str) -> None:
        """Accuse whoever did it too early."""
        if not durable:
            self.found.append(Violation(Kind.OTHER, f"{what} before that was durable"))

    def note(self, records: Sequence[AnyRecord]) -> None:
        """Take in records that are in the log."""
        for record in records:
            self.last_slot = max(self.last_slot, record.slot)
            if isinstance(record, Cancel):
                self.cancels.add(record.turn_id)
            for event in record.events if isinstance(record, Events) else ():
                self._note_event(event)

    def _note_event(self, event: Event) -> None:
        self.events.add((event.epoch, event.seq))
        if event.type == TOOL_START:
            self.tool_keys.add(json.loads(event.private)["idempotency_key"])
        elif event.type == TURN_START:
            self.attempts.add((event.subject, json.loads(event.data)["attempt"]))


class Witness:
    """A ``Journal``: an edge's way to the store."""

    def __init__(self, inner: Journal, seen: Seen) -> None:
        self._inner = inner
        self._seen = seen
        self._sent: dict[asyncio.Task[Any], None] = {}

    async def _ask(self, call: Coroutine[Any, Any, T]) -> T:
        """Send a call, which is then on its way whatever becomes of its sender."""
        sent = asyncio.get_running_loop().create_task(_answered(call))
        self._sent[sent] = None
        sent.add_done_callback(self._sent.pop)
        return await asyncio.shield(sent)

    async def create_session(self, session_id: str, owner: str) -> None:
        await self._ask(self._inner.create_session(session_id, owner))

    async def head(self, session_id: str) -> Head | None:
        """Read the head; its renewal is told in virtual time, of which a real store's clock knows nothing."""
        head = await self._ask(self._inner.head(session_id))
        if head is None or math.isinf(head.renewed_seconds_ago):
            return head
        _, renewed_at = self._seen.renewals[session_id]
        return replace(
            head,
            renewed_seconds_ago=asyncio.get_running_loop().time() - renewed_at,
            renewed_at_ms=int(renewed_at * 1000),
        )

    async def read(self, session_id: str, after_slot: int, limit: int) -> Page:
        page = await self._ask(self._inner.read(session_id, after_slot, limit))
        self._seen.note(page.records)
        return page

    async def locate(self, session_id: str, seq: int) -> int | None:
        return await self._ask(self._inner.locate(session_id, seq))

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        await self._ask(self._inner.append(session_id, records, turn))
        self._seen.note(records)

    async def turn(self, session_id: str, turn_id: str) -> TurnEntry | None:
        return await self._ask(self._inner.turn(session_id, turn_id))

    async def renew(self, session_id: str, renewal: Renewal) -> None:
        now = asyncio.get_running_loop().time()
        epoch, _ = self._seen.renewals.get(session_id, (0, 0.0))
        if renewal.epoch >= epoch:
            self._seen.renewals[session_id] = (renewal.epoch, now)
        await self._ask(self._inner.renew(session_id, renewal))

    async def watch(self, session_id: str) -> None:
        await self._ask(self._inner.watch(session_id))

    async def check(self) -> None:
        await self._ask(self._inner.check())

    async def close(self) -> None:
        await asyncio.gather(*self._sent, return_exceptions=True)
        await self._ask(self._inner.close())


async def _answered(call: Coroutine[Any, Any, T]) -> T:
    with real_io():
        return await call


@dataclass(frozen=True, slots=True)
class Stores:
    """Makes stores of one kind."""

    name: str
    fresh: Callable[[], Connect]
    """Make a store without content; what it returns connects to it, once for every edge."""


def memory() -> Stores:
    """Edges share one object."""

    def fresh() -> Connect:
        journal = MemoryJournal(LoopClock())

        async def connect() -> Journal:
            return journal

        return connect

    return Stores("memory", fresh)


def sqlite(folder: Path) -> Stores:
    """Each store is a file of its own in ``folder``; each edge opens it anew, as another process would."""

    def fresh() -> Connect:
        path = folder / f"{fresh_project()}.sqlite3"

        async def connect() -> Journal:
            with real_io():
                return await SqliteJournal.open(path, LoopClock())

        return connect

    return Stores("SQLite", fresh)


def firestore(host: str) -> Stores:
    """Each store is a project of its own in the emulator; each edge has a channel of its own."""

    def fresh() -> Connect:
        project = fresh_project()

        async def connect() -> Journal:
            return FirestoreJournal.connect(LoopClock(), project=project, emulator_host=host)

        return connect

    return Stores("Firestore", fresh)
