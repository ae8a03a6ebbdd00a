"""The one store of a run, and each edge's link to it.

Knows nothing of edges but their names. The store is the memory journal; what it has committed is also
kept in plain sight for the judge, expired or not.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from edge.core.errors import EdgeError, JournalUnavailable
from edge.core.event import Event
from edge.core.log import Acquire, AnyRecord, Cancel, Events
from edge.journal.memory import MemoryJournal
from edge.ports import AppendUnknown, Clock, Head, Page, Renewal, TurnEntry
from edge.sessions.appending import FOUND_LIMIT
from tests.simulation.loop import at_once
from tests.simulation.weather import Weather

T = TypeVar("T")


class Store(MemoryJournal):
    """A memory journal of one session that shows what it holds."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.records: dict[int, AnyRecord] = {}
        self.events: dict[int, Event] = {}
        self.cancelled: set[str] = set()
        self.calls: set[str] = set()
        """Subjects of every ``tool_start``."""
        self.ended: set[str] = set()
        """Subjects of every terminal event."""
        self.newest_turn = ""
        self.holder = ""
        """Who wrote the newest acquire."""
        self.on_acquire: Callable[[str], None] = lambda writer: None
        """Told who acquires, while ``holder`` still is whoever held the session before."""
        self.told: dict[str, int] = {}
        """The newest epoch that each edge was told of where it looked for what stands in its way."""

    @property
    def last_seq(self) -> int:
        return len(self.events)

    def log(self) -> list[AnyRecord]:
        return [self.records[slot] for slot in sorted(self.records)]

    def newest(self) -> Event | None:
        return self.events.get(self.last_seq)

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        await super().append(session_id, records, turn)
        for record in records:
            self.records[record.slot] = record
            if isinstance(record, Acquire):
                self.on_acquire(record.writer)
                self.holder = record.writer
            elif isinstance(record, Cancel):
                self.cancelled.add(record.turn_id)
            elif isinstance(record, Events):
                self._index(record.events)

    def _index(self, events: Sequence[Event]) -> None:
        for event in events:
            self.events[event.seq] = event
            if event.type == "tool_start":
                self.calls.add(event.subject)
            elif event.type == "turn_start":
                self.newest_turn = event.subject
            elif event.type in ("done", "error"):
                self.ended.add(event.subject)


class StoreLink:
    """A ``Journal``: one edge's way to the store, through the weather.

    What was sent is on its way whatever becomes of the sender; that is why nothing of a call but the
    waiting happens in the edge's own tasks.
    """

    def __init__(self, store: Store, weather: Weather, edge: str) -> None:
        self._store = store
        self._weather = weather
        self._edge = edge

    async def _through(
        self, call: Callable[[], T], failure: EdgeError, *, writes: bool = False
    ) -> T:
        reply: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        weather = self._weather

        def lost() -> None:
            if not reply.done():
                weather.counts["appends_unknown" if writes else "calls_failed"] += 1
                reply.set_exception(failure)

        def arrive() -> None:
            if writes:
                self._note_delays(call, given_up=reply.done())
            try:
                result = call()
            except EdgeError as error:
                refusal = error
                weather.answer(lambda: None if reply.done() else reply.set_exception(refusal))
            else:
                weather.answer(lambda: None if reply.done() else reply.set_result(result))

        cut_off = weather.cut_off(self._edge)
        weather.carry(arrive, cut_off=cut_off, repeatable=writes, lost=lost)
        return await reply

    def _note_delays(self, commit: Callable[[], object], *, given_up: bool) -> None:
        """A commit comes in: perhaps after its sender gave it up, perhaps for the second time."""
        counts = self._weather.counts
        counts["commits_late"] += given_up
        if self._weather.echo():
            counts["commits_echoed"] += 1
            with suppress(EdgeError):
                commit()

    async def _ask(self, call: Callable[[], T]) -> T:
        return await self._through(call, JournalUnavailable())

    async def create_session(self, session_id: str, owner: str) -> None:
        await self._ask(lambda: at_once(self._store.create_session(session_id, owner)))

    async def head(self, session_id: str) -> Head | None:
        head = await self._ask(lambda: at_once(self._store.head(session_id)))
        if head is not None and self._weather.hit(self._weather.lies):
            self._weather.counts["spurious_expiries"] += 1
            return replace(head, renewed_seconds_ago=math.inf)
        return head

    async def read(self, session_id: str, after_slot: int, limit: int) -> Page:
        page = await self._ask(lambda: at_once(self._store.read(session_id, after_slot, limit)))
        if limit == FOUND_LIMIT:  # a viewer's pages, for instance, tell the owner nothing
            self._note(page)
        return page

    def _note(self, page: Page) -> None:
        """Keep the newest epoch that the edge was told of.

        An owner that finds its own events looks no further: it meets what follows at its next append,
        and what it shows until then is taken back later.
        """
        first = page.records[0] if page.records else None
        if isinstance(first, Events) and first.writer.startswith(self._edge):
            return
        epochs = [record.epoch for record in page.records if isinstance(record, Acquire)]
        told = self._store.told
        told[self._edge] = max([told.get(self._edge, 0), *epochs])

    async def locate(self, session_id: str, seq: int) -> int | None:
        return await self._ask(lambda: at_once(self._store.locate(session_id, seq)))

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        frozen = tuple(records)
        await self._through(
            lambda: at_once(self._store.append(session_id, frozen, turn)),
            AppendUnknown(),
            writes=True,
        )

    async def turn(self, session_id: str, turn_id: str) -> TurnEntry | None:
        return await self._ask(lambda: at_once(self._store.turn(session_id, turn_id)))

    async def renew(self, session_id: str, renewal: Renewal) -> None:
        await self._ask(lambda: at_once(self._store.renew(session_id, renewal)))

    async def watch(self, session_id: str) -> None:
        await self._ask(lambda: at_once(self._store.watch(session_id)))

    async def check(self) -> None:
        await self._ask(lambda: at_once(self._store.check()))

    async def close(self) -> None:
        """Others still use the store."""
