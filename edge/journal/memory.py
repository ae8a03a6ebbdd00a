"""The journal in this process's memory, for tests, simulations and a look around.

Deliberately absent: durability, other processes, and the removal of what has expired.

Invariant: no method awaits, so each is atomic on its event loop.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from edge.core.log import AnyRecord
from edge.journal.rules import (
    LOG_RETENTION_SECONDS,
    age_seconds,
    check_append,
    head_expiry_ms,
)
from edge.ports import Clock, Head, Page, Renewal, SlotTaken, TurnEntry

_NO_HINTS = Renewal(epoch=0, last_slot=0)


@dataclass(frozen=True, slots=True)
class _StoredHead:
    owner: str
    expire_at_ms: int
    hints: Renewal = _NO_HINTS
    renewed_at_ms: int | None = None
    watched_at_ms: int | None = None


@dataclass(slots=True)
class _Session:
    head: _StoredHead | None = None
    slots: list[int] = field(default_factory=list)
    records: dict[int, AnyRecord] = field(default_factory=dict)
    turns: dict[str, TurnEntry] = field(default_factory=dict)


class MemoryJournal:
    """A ``Journal`` that several edges of one process may share."""

    def __init__(
        self, clock: Clock, *, log_retention_seconds: float = LOG_RETENTION_SECONDS
    ) -> None:
        self._clock = clock
        self._log_retention_seconds = log_retention_seconds
        self._sessions: dict[str, _Session] = {}

    async def create_session(self, session_id: str, owner: str) -> None:
        session = self._sessions.setdefault(session_id, _Session())
        if session.head is not None:
            raise SlotTaken("session exists")
        session.head = _StoredHead(owner, self._head_expiry_ms())

    async def head(self, session_id: str) -> Head | None:
        stored = self._live_head(session_id)
        if stored is None:
            return None
        hints, now_ms = stored.hints, self._clock.now_ms()
        return Head(
            owner=stored.owner,
            epoch=hints.epoch,
            last_slot=hints.last_slot,
            renewed_seconds_ago=age_seconds(now_ms, stored.renewed_at_ms),
            renewed_at_ms=stored.renewed_at_ms or 0,
            watched_seconds_ago=age_seconds(now_ms, stored.watched_at_ms),
        )

    async def read(self, session_id: str, after_slot: int, limit: int) -> Page:
        records: list[AnyRecord] = []
        for record in self._live_records(session_id, after_slot):
            if len(records) == limit:
                return Page(records, more=True)
            records.append(record)
        return Page(records, more=False)

    async def locate(self, session_id: str, seq: int) -> int | None:
        live = self._live_records(session_id, after_slot=0)
        return next((record.slot for record in live if record.last_seq >= seq), None)

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        check_append(records, turn)
        session = self._sessions.setdefault(session_id, _Session())
        if turn is not None and turn.turn_id in session.turns:
            raise SlotTaken("turn exists")
        if any(record.slot in session.records for record in records):
            raise SlotTaken("slot exists")
        for record in records:
            session.records[record.slot] = record
            insort(session.slots, record.slot)
        if turn is not None:
            session.turns[turn.turn_id] = turn

    async def turn(self, session_id: str, turn_id: str) -> TurnEntry | None:
        session = self._sessions.get(session_id, _Session())
        return session.turns.get(turn_id)

    async def renew(self, session_id: str, renewal: Renewal) -> None:
        stored = self._live_head(session_id)
        if stored is None or renewal.epoch < stored.hints.epoch:
            return
        self._sessions[session_id].head = replace(
            stored,
            hints=renewal,
            renewed_at_ms=None if renewal.released else self._clock.now_ms(),
            expire_at_ms=max(stored.expire_at_ms, self._head_expiry_ms()),
        )

    async def watch(self, session_id: str) -> None:
        stored = self._live_head(session_id)
        if stored is not None:
            self._sessions[session_id].head = replace(stored, watched_at_ms=self._clock.now_ms())

    async def check(self) -> None:
        """Memory always answers."""

    async def close(self) -> None:
        """Nothing is held; edges that share the journal close it one by one."""

    def _live_records(self, session_id: str, after_slot: int) -> Iterator[AnyRecord]:
        session = self._sessions.get(session_id, _Session())
        for slot in session.slots[bisect_right(session.slots, after_slot) :]:
            if self._is_live(session.records[slot].expire_at_ms):
                yield session.records[slot]

    def _live_head(self, session_id: str) -> _StoredHead | None:
        stored = self._sessions.get(session_id, _Session()).head
        return stored if stored is not None and self._is_live(stored.expire_at_ms) else None

    def _is_live(self, expire_at_ms: int) -> bool:
        return expire_at_ms > self._clock.now_ms()

    def _head_expiry_ms(self) -> int:
        return head_expiry_ms(self._clock.now_ms(), self._log_retention_seconds)
