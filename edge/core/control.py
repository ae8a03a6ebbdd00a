"""Control events: what one connection is told besides the log. They are never journaled.

Knows nothing of SSE framing: ``edge.wire`` gives each browser format its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edge.core.cursor import Cursor

ResetReason = Literal["expired", "future", "unknown", "gap"]
ReconnectReason = Literal["deadline", "rolling", "busy"]


@dataclass(frozen=True, slots=True)
class Rewind:
    """Drop everything after ``to``: it did not survive its writer. Only ever takes back tokens."""

    to: Cursor


@dataclass(frozen=True, slots=True)
class Reset:
    """Clear everything: the position means nothing here. What follows starts at ``first_seq``."""

    reason: ResetReason
    first_seq: int


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything that was in the log when the stream was opened has been sent."""


@dataclass(frozen=True, slots=True)
class Status:
    """Whether what is shown can be made durable just now."""

    state: Literal["degraded", "ok"]


@dataclass(frozen=True, slots=True)
class Reconnect:
    """The server ends this stream on purpose; come back with the last id after ``retry_ms``."""

    reason: ReconnectReason
    retry_ms: int


Control = Rewind | Reset | CaughtUp | Status | Reconnect
