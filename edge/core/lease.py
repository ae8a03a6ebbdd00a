"""The lease: when an owner may still be believed, and when somebody else may take over.

Knows nothing of locks: the log is the lock. A wrong answer here costs a rewind, never correctness.
All times but the store's own reckoning are seconds of one process's monotonic clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

FENCE_MARGIN_SECONDS = 3.0
"""An owner falls silent this long before takers may move, so that two never talk at once for long."""


@dataclass(slots=True)
class Lease:
    """How fresh an owner's knowledge is that nobody has taken over."""

    ttl_seconds: float
    confirmed_at: float
    """Monotonic seconds at which the newest acknowledged append or read of the next slot was *sent*."""

    def confirm(self, sent_at: float) -> None:
        self.confirmed_at = max(self.confirmed_at, sent_at)

    def fresh(self, now: float) -> bool:
        """Whether uncommitted tokens may be shown (P-LOG-12)."""
        return now < self.confirmed_at + max(self.ttl_seconds - FENCE_MARGIN_SECONDS, 0.0)


class Vacancy(Enum):
    """What a follower makes of the head: is the seat of the owner free?"""

    TAKEN = "taken"
    DOUBTFUL = "doubtful"
    """No sign of life. It must stay so for ``SUSPICION_SHARE`` of the TTL before somebody moves."""
    FREE = "free"


SUSPICION_SHARE = 2 / 15
"""A head may lag behind its owner: a turn's first renewal is on its way when its first record is read,
and an owner that was idle between two turns has not renewed for long."""


def decide_vacancy(
    *,
    needs_writer: bool,
    head_epoch: int,
    log_epoch: int,
    renewed_seconds_ago: float,
    unchanged_seconds: float,
    ttl_seconds: float,
) -> Vacancy:
    """Judge whether a follower should append an ``Acquire`` (P-LOG-13).

    ``renewed_seconds_ago`` is the store's own reckoning, so that whoever comes late need not wait. In the
    epoch of the log it is infinite when the owner released the session, so that takers need not wait
    either. ``unchanged_seconds`` is how long the follower itself has seen no renewal: the store's clock
    may have been set back, and a renewal that lies in its future does not age.
    """
    if not needs_writer:
        return Vacancy.TAKEN
    if head_epoch != log_epoch:
        return Vacancy.DOUBTFUL
    if math.isinf(renewed_seconds_ago):
        return Vacancy.FREE
    silent_seconds = max(renewed_seconds_ago, unchanged_seconds)
    return Vacancy.DOUBTFUL if silent_seconds > ttl_seconds else Vacancy.TAKEN


@dataclass(slots=True)
class Suspicion:
    """What one follower has seen of an owner with its own eyes: its renewals, and since when it is in doubt."""

    ttl_seconds: float
    _renewal: tuple[int, int] | None = None
    _renewal_seen_at: float = 0.0
    _doubtful_since: float | None = None

    def unchanged_seconds(self, renewal: tuple[int, int], now: float) -> float:
        """Take in which renewal the head tells of, by epoch and stamp; return for how long it has been that one."""
        if renewal != self._renewal:
            self._renewal, self._renewal_seen_at = renewal, now
        return now - self._renewal_seen_at

    def dispel(self) -> None:
        """The owner gave a sign of life."""
        self._doubtful_since = None

    def confirms(self, vacancy: Vacancy, now: float) -> bool:
        """Take in the newest judgement; return whether it is time to move."""
        if vacancy is not Vacancy.DOUBTFUL:
            self._doubtful_since = None
            return vacancy is Vacancy.FREE
        if self._doubtful_since is None:
            self._doubtful_since = now
        return now - self._doubtful_since >= self.ttl_seconds * SUSPICION_SHARE
