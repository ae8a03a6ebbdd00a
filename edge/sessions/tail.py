"""The tail: the recent events of one session, in memory, shared by all its viewers in this process.

Knows nothing of who feeds it (the driver that owns the session, or the follower of another edge's log) or
of what its viewers are. Each event is framed once here.

Invariants: the events are contiguous; what was trimmed is in the journal; viewers only pull.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from edge.core.control import Status
from edge.core.event import TERMINAL, TURN_START, Event


class Shown(NamedTuple):
    """An event that may be shown, with the bytes of its native frame."""

    event: Event
    frame: bytes


class Tail:
    """Recent events after ``floor_seq``, up to ``last_seq``."""

    def __init__(self, encode: Callable[[Event], bytes], limit_bytes: int) -> None:
        self._encode = encode
        self._limit_bytes = limit_bytes
        self._shown: deque[Shown] = deque()
        self._bytes = 0
        self._waiting: dict[asyncio.Future[None], None] = {}  # in order of arrival
        self.last_seq = 0
        self.committed_seq = 0
        self.busy = False
        """Whether the newest event shown belongs to a turn that has not ended."""
        self.status = Status("ok")
        self.closed = False
        """No viewer of this tail may be told anything more: its writer was fenced, or the edge drains."""

    @property
    def floor_seq(self) -> int:
        """Newest seq that is no longer here."""
        return self.last_seq - len(self._shown)

    def start_after(self, seq: int) -> None:
        """Begin with the event after ``seq``: what came before it has expired. Only while empty."""
        assert not self._shown
        self.last_seq = self.committed_seq = seq

    def show(self, events: Iterable[Event]) -> None:
        """Let viewers have the next events."""
        for event in events:
            assert event.seq == self.last_seq + 1, (event.seq, self.last_seq)
            shown = Shown(event, self._encode(event))
            self._shown.append(shown)
            self._bytes += len(shown.frame)
            self.last_seq = event.seq
            if event.type == TURN_START:
                self.busy = True
            elif event.type in TERMINAL:
                self.busy = False
        self._trim()
        self.wake()

    def commit(self, seq: int) -> None:
        """Everything up to ``seq`` is in the journal, so it may be trimmed."""
        self.committed_seq = max(self.committed_seq, seq)
        self._trim()

    def after(self, seq: int, limit_bytes: int) -> list[Shown]:
        """Return the events after ``seq`` that fit in the limit, at least one if there is any."""
        size = 0
        batch: list[Shown] = []
        for index in range(max(seq - self.floor_seq, 0), len(self._shown)):
            shown = self._shown[index]
            size += len(shown.frame)
            if batch and size > limit_bytes:
                break
            batch.append(shown)
        return batch

    def bytes_after(self, seq: int) -> int:
        """Return how many bytes a viewer at ``seq`` has not had yet."""
        start = max(seq - self.floor_seq, 0)
        return sum(len(self._shown[i].frame) for i in range(start, len(self._shown)))

    def set_status(self, status: Status) -> None:
        """Tell viewers whether what they are shown can be made durable."""
        if status != self.status:
            self.status = status
            self.wake()

    def close(self) -> None:
        self.closed = True
        self.wake()

    def wake(self) -> None:
        """Let every waiting viewer look again."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def waiter(self) -> asyncio.Future[None]:
        """Return a future that the next ``wake`` resolves. Check the state first: nothing is remembered."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = None
        return future

    def discard(self, future: asyncio.Future[None]) -> None:
        self._waiting.pop(future, None)

    def _trim(self) -> None:
        while self._bytes > self._limit_bytes and self._shown:
            if self._shown[0].event.seq > self.committed_seq:
                return
            self._bytes -= len(self._shown.popleft().frame)
