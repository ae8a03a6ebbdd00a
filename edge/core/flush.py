"""When uncommitted events must be appended.

Knows nothing of the log. Structural events go at once, because something waits for them; tokens wait, because
one record for many costs twenty times less to write, replay and delete.
"""

from __future__ import annotations

from dataclasses import dataclass

from edge.core.event import Event

RECORD_LIMIT_BYTES = 256 * 1024
"""What one record may carry beside a single larger event; stores refuse a document of 1 MiB."""
RECORD_LIMIT_EVENTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushPolicy:
    """How long tokens may stay uncommitted."""

    age_seconds: float = 0.5
    size_bytes: int = 64 * 1024
    spacing_seconds: float = 0.1
    """Pause between batches, so that a cancel or a take-over finds a free slot (P-LOG-10)."""


@dataclass(slots=True)
class Unflushed:
    """What waits for the next record, as far as timing needs to know."""

    size_bytes: int = 0
    structural: int = 0
    """How many structural events wait."""
    oldest_at: float = 0.0
    appended_at: float = float("-inf")
    """When the newest batch was sent."""

    def due_at(self, policy: FlushPolicy) -> float | None:
        """Return the monotonic time at which to append; ``None`` when nothing waits."""
        if not self.size_bytes:
            return None
        if self.structural:
            return self.oldest_at
        spaced = self.appended_at + policy.spacing_seconds
        full = self.size_bytes >= policy.size_bytes
        return spaced if full else max(self.oldest_at + policy.age_seconds, spaced)


def take_batch(pending: list[Event]) -> tuple[Event, ...]:
    """Remove and return the events of the next record: as many as fit, at least one."""
    size, count = 0, 0
    for event in pending[:RECORD_LIMIT_EVENTS]:
        size += event.size_bytes
        if count and size > RECORD_LIMIT_BYTES:
            break
        count += 1
    batch = tuple(pending[:count])
    del pending[:count]
    return batch
