"""The attempts that a runtime has seen: an attempt must be higher than every earlier one.

The edge makes an attempt durable before it asks for it, so its number is a fencing token: whoever
asks with a lower one has lost the turn. Pure; knows nothing of how attempts run. Memory is bounded:
what was not heard of for ``ttl_seconds``, or is the oldest of too many, is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum, auto

TurnKey = tuple[str, str]
"""Session id and turn id."""


class Verdict(Enum):
    """What becomes of a request to run an attempt."""

    ADMITTED = auto()
    STALE = auto()
    RUNNING_HERE = auto()


class Fence:
    """The highest attempt seen of each turn."""

    def __init__(self, *, capacity: int = 10_000, ttl_seconds: float = 3600.0) -> None:
        self._capacity = capacity
        self._ttl_seconds = ttl_seconds
        self._seen: OrderedDict[TurnKey, tuple[int, float]] = OrderedDict()

    def admit(self, turn: TurnKey, attempt: int, *, running: int, now: float) -> Verdict:
        """Judge an attempt and remember it if it is admitted.

        Args:
            running: the attempt of the turn that runs in this process; 0 if none does.
            now: monotonic seconds.
        """
        self._forget(now)
        if attempt == running:
            return Verdict.RUNNING_HERE
        seen, _ = self._seen.get(turn, (0, now))
        if attempt <= max(seen, running):
            return Verdict.STALE
        self._seen[turn] = (attempt, now)
        self._seen.move_to_end(turn)
        return Verdict.ADMITTED

    def _forget(self, now: float) -> None:
        while self._seen:
            turn, (_, seen_at) = next(iter(self._seen.items()))
            if len(self._seen) <= self._capacity and now - seen_at <= self._ttl_seconds:
                return
            del self._seen[turn]
