"""How patient a writer is, and the readings of clock and chance that it is patient by.

Knows nothing of clocks and dice themselves: a shell has them, and passes a reading along.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from edge.core.flush import FlushPolicy


class Chance(Protocol):
    """A source of chance; ``random.Random`` is one."""

    def random(self) -> float:
        """Return a number in [0, 1)."""


class Now(NamedTuple):
    """One reading of the clocks."""

    seconds: float
    """Monotonic; decides everything."""
    wall_ms: int
    """Wall clock; stamped into records, decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """How patient a writer is."""

    ttl_seconds: float = 15.0
    retention_ms: int = 24 * 3600 * 1000
    poll_seconds: float = 1.0
    cancel_grace_seconds: float = 5.0
    cancel_patience_seconds: float = 5.0
    """How much longer than its grace period a runtime may take to end a cancelled turn."""
    max_barren_attempts: int = 10
    """Attempts in a row without a message or a tool call; waiting for a person is free."""
    backoff_base_seconds: float = 0.2
    backoff_limit_seconds: float = 5.0
    event_limit_bytes: int = 512 * 1024
    """Of ``data`` and ``private`` together; ``edge.upstream`` allows each of them half."""
    flush: FlushPolicy = field(default_factory=FlushPolicy)
