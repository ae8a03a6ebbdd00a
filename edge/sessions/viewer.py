"""A viewer: one connection's position in a session's log.

Knows nothing of SSE. It holds a cursor and pulls: from the shared tail while it keeps up, from journal pages
when it does not. It has no queue, so nothing it does can slow another viewer or the turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from edge.core.control import (
    CaughtUp,
    Control,
    Reconnect,
    Reset,
    Status,
    decide_expiry,
    decide_reconnect,
)
from edge.core.cursor import Cursor
from edge.core.errors import JournalUnavailable
from edge.core.event import Event
from edge.core.log import Events
from edge.core.replay import Attachment, Served, decide_attach
from edge.core.requests import Until
from edge.sessions.services import Services
from edge.sessions.tail import Shown, Tail


class Watched(Protocol):
    """What a viewer needs of its session."""

    session_id: str
    tail: Tail

    @property
    def epoch(self) -> int:
        """Newest epoch that was read from the log."""

    def served(self) -> Served:
        """Return the log as it can be served now."""

    def leave(self, viewer: Viewer) -> None:
        """Forget the viewer."""


class Viewer:
    """Pull with ``next`` until it returns ``None``; ``close`` in any case."""

    def __init__(
        self, services: Services, watched: Watched, attachment: Attachment, until: Until
    ) -> None:
        loop = asyncio.get_running_loop()
        spread = 0.8 + 0.4 * services.chance.random()
        self.start = attachment.position
        self.position = attachment.position
        self.on_stall: Callable[[], None] | None = None
        self.expires_at_ms: int | None = None
        """When the caller's credentials end, by the wall clock; ``None``: never."""
        self._services = services
        self._watched = watched
        self._tail = watched.tail
        self._until = until
        self._now = loop.time
        self._dies_at = loop.time() + services.settings.stream_life_seconds * spread
        self._epoch = watched.epoch
        self._caught_up_at: int | None = self._tail.last_seq
        self._status = Status("ok")
        self._said: deque[Control] = deque([attachment.control] if attachment.control else [])
        self._page: deque[Event] = deque()
        self._page_slot = 0  # slot of the last record paged; 0 before the first
        self._waiter: asyncio.Future[None] | None = None
        self._silent_since = loop.time()
        self._writing_since: float | None = None
        self._ping_due = False
        self._warned = False
        self._over = False

    @property
    def lags(self) -> bool:
        """Whether events are there already, so that ``next`` need not wait for any."""
        return self.position.seq < self._tail.last_seq

    async def next(self) -> list[Shown | Control] | None:
        """Return everything that is ready, or wait for it; ``[]`` when a ping is due, ``None`` at the end.

        The time between a return and the next call counts as one write.
        """
        self._writing_since = None
        items = await self._next()
        if items is not None:
            self._ping_due = False
            self._silent_since = self._writing_since = self._now()
        return items

    async def _next(self) -> list[Shown | Control] | None:
        while not self._tail.closed:
            self._resolve_again()
            events = await self._events()
            items: list[Shown | Control] = [*self._controls(), *events, *self._milestones()]
            if items:
                return items
            if self._over or self._at_end():
                return None
            if self._ping_due:
                return []
            await self._wait()
        # Nothing here can be believed any more, but where to go next.
        last_words: list[Shown | Control] = [c for c in self._said if isinstance(c, Reconnect)]
        self._said.clear()
        return last_words or None

    def _resolve_again(self) -> None:
        """P-RES-2: when the epoch grows, what was shown ahead of the log may not have survived."""
        if self._watched.epoch == self._epoch:
            return
        self._epoch = self._watched.epoch
        attachment = decide_attach(self.position, self._watched.served())
        if attachment.control is not None:
            self._move(attachment.position, attachment.control)

    def _move(self, position: Cursor, control: Control) -> None:
        self.position = position
        self._said.append(control)
        self._page.clear()
        self._page_slot = 0

    def _controls(self) -> list[Control]:
        """Return what the connection has to be told before its next event."""
        if self._tail.status != self._status:
            self._status = self._tail.status
            self._said.append(self._status)
        said = list(self._said)
        self._said.clear()
        return said

    async def _events(self) -> list[Shown]:
        limit = self._services.settings.batch_limit_bytes
        if self._over:
            return []
        if self.position.seq >= self._tail.floor_seq:
            self._page.clear()
            self._page_slot = 0
            batch = self._tail.after(self.position.seq, limit)
        else:
            try:
                batch = await self._paged(limit)
            except JournalUnavailable:
                # Nothing can be said that would stay true: come back with the same cursor.
                self.send_away(decide_reconnect("busy", self._services.chance))
                return []
        if batch:
            event = batch[-1].event
            self.position = Cursor(event.epoch, event.seq)
        return batch

    async def _paged(self, limit: int) -> list[Shown]:
        """Return the next events from the journal."""
        if not self._page:
            await self._turn_page()
        batch: list[Shown] = []
        size = 0
        while self._page and size < limit:
            event = self._page.popleft()
            batch.append(Shown(event, self._services.encode(event)))
            size += len(batch[-1].frame)
        return batch

    async def _turn_page(self) -> None:
        journal, session_id = self._services.journal, self._watched.session_id
        if not self._page_slot:
            located = await journal.locate(session_id, self.position.seq + 1)
            self._page_slot = (located or 1) - 1
        more = True
        while more and not self._page:
            limit = self._services.settings.page_records
            page = await journal.read(session_id, self._page_slot, limit)
            more = page.more
            for record in page.records:
                self._page_slot = record.slot
                if isinstance(record, Events):
                    self._page.extend(e for e in record.events if e.seq > self.position.seq)
        first_seq = self._page[0].seq if self._page else self._tail.floor_seq + 1
        if first_seq != self.position.seq + 1:
            # A hole, or retention overtook the reader: it is told, never skipped.
            self.position = Cursor(0, first_seq - 1)
            self._said.append(Reset("gap", first_seq))

    def _milestones(self) -> list[Control]:
        if self._over:  # the last word was said
            return []
        if self._caught_up_at is not None and self.position.seq >= self._caught_up_at:
            self._caught_up_at = None
            return [CaughtUp()]
        return []

    def _at_end(self) -> bool:
        """A stream until ``turn_end`` ends when nothing is left to say: never before the terminal event."""
        done = not self._tail.busy and self.position.seq >= self._tail.last_seq
        return self._until == "turn_end" and done

    async def _wait(self) -> None:
        self._waiter = self._tail.waiter()
        try:
            await self._waiter
        finally:
            self._tail.discard(self._waiter)
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def beat(self, now: float, tick_seconds: float) -> None:
        """Look at the viewer's deadlines; called for all of them by one timer."""
        self._heed_expiry()
        settings = self._services.settings
        if self._writing_since is not None:
            if now - self._writing_since >= settings.stall_seconds and self.on_stall is not None:
                self._services.telemetry.count("viewers_stalled")
                self.on_stall()
        elif now >= self._dies_at:
            self.send_away(decide_reconnect("deadline", self._services.chance))
        elif now - self._silent_since >= settings.ping_seconds - tick_seconds:
            self._ping_due = True
            self._wake()

    def _heed_expiry(self) -> None:
        if self.expires_at_ms is None:
            return
        services = self._services
        word = decide_expiry(self.expires_at_ms - services.clock.now_ms(), services.chance)
        if isinstance(word, Reconnect):
            self.send_away(word)
        elif word is not None and not (self._warned or self._over):
            self._warned = True
            self._said.append(word)
            self._wake()

    def send_away(self, reconnect: Reconnect) -> None:
        """End the stream resumably, after what is being written."""
        if not self._over:
            self._over = True
            self._said.append(reconnect)
            self._wake()

    def lag_bytes(self) -> int:
        """Return how much of the tail this viewer has not had."""
        return self._tail.bytes_after(self.position.seq)

    def close(self) -> None:
        """Leave the session. Idempotent."""
        self._watched.leave(self)
