"""How long a writer waits for a runtime that was told to stop, and for one that it must leave.

Knows nothing of what happens when a deadline passes.
"""

from __future__ import annotations

LAST_WORDS_SECONDS = 1.0
"""How long an attempt that cannot be told to stop is still listened to: its end may be on its way."""


class Deadlines:
    """Monotonic times, each set at most once in earnest."""

    def __init__(self) -> None:
        self.stop_at: float | None = None
        """When a cancelled attempt that has not ended is dropped."""
        self.leave_at: float | None = None
        """When a draining owner closes, whatever is left."""

    @property
    def draining(self) -> bool:
        return self.leave_at is not None

    def late(self, now_seconds: float) -> bool:
        """Whether the time to leave is over."""
        return self.leave_at is not None and now_seconds >= self.leave_at

    def listen_briefly(self, now_seconds: float) -> bool:
        """Shorten the wait for an attempt that is being stopped; ``False`` if none is."""
        if self.stop_at is None:
            return False
        self.stop_at = min(self.stop_at, now_seconds + LAST_WORDS_SECONDS)
        return True

    def stop_is_due(self, now_seconds: float) -> bool:
        """Return once whether the patience with a cancelled attempt is over."""
        if self.stop_at is None or now_seconds < self.stop_at:
            return False
        self.stop_at = None
        return True
