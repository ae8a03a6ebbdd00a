"""The rule of showing: what viewers may have of what is numbered.

Knows nothing of viewers. A structural event is shown once it is committed; a token at once, but only behind
committed structural events and while the lease is fresh. So a rewind only ever takes back tokens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from edge.core.event import Event


class Showing:
    """Numbered events that no viewer has had, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()

    def add(self, event: Event) -> None:
        self._waiting.append(event)

    def forget(self, events: Iterable[Event]) -> None:
        """These will never be in the log."""
        for event in events:
            self._waiting.remove(event)

    def clear(self) -> None:
        self._waiting.clear()

    def take(self, durable_seq: int, *, lease_fresh: bool) -> list[Event]:
        """Remove and return what may be shown now."""
        shown: list[Event] = []
        while self._waiting:
            event = self._waiting[0]
            if event.seq > durable_seq and (event.structural or not lease_fresh):
                break
            shown.append(self._waiting.popleft())
        return shown
