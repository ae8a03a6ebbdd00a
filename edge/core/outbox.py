"""The outbox: events that have a seq and are not known to be in the log.

Knows nothing of when to append (``edge.core.flush``) or whether it worked (``edge.core.writer``). Events leave
in the order they were numbered; only a suffix of tool starts may be taken back, so seqs never have a hole.
"""

from __future__ import annotations

from edge.core.event import TOOL_START, Draft, Event
from edge.core.flush import FlushPolicy, Unflushed, take_batch
from edge.core.log import Cancel, Events, LogView


class Outbox:
    """Numbers events and packs them into records at the slot after ``view``."""

    def __init__(self, view: LogView, me: str, retention_ms: int, policy: FlushPolicy) -> None:
        self._view = view
        self._me = me
        self._retention_ms = retention_ms
        self._policy = policy
        self._pending: list[Event] = []
        self._frozen: tuple[Event, ...] = ()
        self._timing = Unflushed()

    @property
    def empty(self) -> bool:
        return not self._pending and not self._frozen

    @property
    def count(self) -> int:
        return len(self._pending) + len(self._frozen)

    @property
    def size_bytes(self) -> int:
        return self._timing.size_bytes + sum(event.size_bytes for event in self._frozen)

    @property
    def ends_with_tool_start(self) -> bool:
        """Whether a cancel could still take something back."""
        newest = self._pending or self._frozen
        return bool(newest) and newest[-1].type == TOOL_START

    def number(self, draft: Draft, seconds: float, wall_ms: int) -> Event:
        """Give the draft the next seq."""
        event = Event(
            epoch=self._view.epoch,
            seq=self._view.last_seq + self.count + 1,
            type=draft.type,
            data=draft.data,
            subject=draft.subject,
            structural=draft.structural,
            private=draft.private,
            at_ms=wall_ms,
        )
        if not self._pending:
            self._timing.oldest_at = seconds
        self._pending.append(event)
        self._weigh(event, +1)
        return event

    def due_at(self) -> float | None:
        """Return the monotonic time of the next append; ``None`` when nothing waits for one."""
        return self._timing.due_at(self._policy)

    def freeze(self, seconds: float, wall_ms: int) -> Events:
        """Pack the next record. What is numbered later goes into the one after it (P-LOG-3)."""
        self._frozen = take_batch(self._pending)
        for event in self._frozen:
            self._weigh(event, -1)
        self._timing.appended_at = self._timing.oldest_at = seconds
        return Events(
            slot=self._view.last_slot + 1,
            epoch=self._view.epoch,
            writer=self._me,
            last_seq=self._frozen[-1].seq,
            expire_at_ms=self._expiry(wall_ms),
            acquire_slot=self._view.acquire_slot,
            events=self._frozen,
        )

    def cancel_record(self, turn_id: str, wall_ms: int) -> Cancel:
        """Pack a cancel for the next slot."""
        return self._view.next_cancel(turn_id, writer=self._me, expire_at_ms=self._expiry(wall_ms))

    def forget_frozen(self) -> None:
        """The frozen events are in the log."""
        self._frozen = ()

    def thaw(self) -> None:
        """The frozen events are not in the log: they go first in the next record, same seqs."""
        for event in self._frozen:
            self._weigh(event, +1)
        self._pending[:0] = self._frozen
        self._frozen = ()

    def take_back_tool_starts(self) -> list[Event]:
        """Remove and return the trailing tool starts; nothing else was numbered after them."""
        taken: list[Event] = []
        while self._pending and self._pending[-1].type == TOOL_START:
            taken.append(self._pending.pop())
            self._weigh(taken[-1], -1)
        return taken

    def _weigh(self, event: Event, sign: int) -> None:
        # An event without text still has to be flushed, hence at least one byte each.
        self._timing.size_bytes += sign * max(event.size_bytes, 1)
        self._timing.structural += sign * event.structural

    def _expiry(self, wall_ms: int) -> int:
        return max(self._view.expire_at_ms, wall_ms + self._retention_ms)
