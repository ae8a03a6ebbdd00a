"""What can happen to a turn: the closed set of inputs of ``edge.core.writer.Writer.receive``.

Knows nothing of where they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edge.core.event import Draft
from edge.core.log import AnyRecord


@dataclass(frozen=True, slots=True)
class Received:
    """Events of the running attempt, in order."""

    attempt: int
    drafts: Sequence[Draft]


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The attempt's stream is over. ``reason`` is empty when it ended with status OK."""

    attempt: int
    reason: str = ""
    retryable: bool = True


@dataclass(frozen=True, slots=True)
class Committed:
    """The record in flight is known to be in the log."""

    sent_at: float


@dataclass(frozen=True, slots=True)
class Met:
    """The record in flight is known not to be in the log: these stand there instead."""

    records: Sequence[AnyRecord]


@dataclass(frozen=True, slots=True)
class Refused:
    """The store will never take the record in flight."""


@dataclass(frozen=True, slots=True)
class Polled:
    """The log after the last known slot was read."""

    sent_at: float
    records: Sequence[AnyRecord]


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Somebody asked this very process to stop the turn."""


@dataclass(frozen=True, slots=True)
class AttemptLost:
    """The runtime answered that the attempt is not there, or holds a newer one."""

    attempt: int
    superseded: bool = False


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """The process is shutting down: hand over at ``deadline`` at the latest."""

    deadline: float


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed."""


Input = (
    Received
    | StreamEnded
    | Committed
    | Met
    | Refused
    | Polled
    | CancelAsked
    | AttemptLost
    | DrainAsked
    | Tick
)
