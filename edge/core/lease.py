"""The lease: when an owner may still be believed, and when somebody else may take over.

Knows nothing of locks: the log is the lock. A wrong answer here costs a rewind, never correctness.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        """Whether uncommitted tokens may be shown (rule R16)."""
        return now < self.confirmed_at + max(self.ttl_seconds - FENCE_MARGIN_SECONDS, 0.0)


def decide_take_over(*, needs_writer: bool, renewed_seconds_ago: float, ttl_seconds: float) -> bool:
    """Whether a follower should append an ``Acquire`` now.

    ``renewed_seconds_ago`` is the store's own reckoning: no process clock takes part (rule R15). It is
    infinite when the owner released the session, so that takers need not wait.
    """
    return needs_writer and renewed_seconds_ago > ttl_seconds
