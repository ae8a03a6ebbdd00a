"""Control events: what one connection is told besides the log. They are never journaled.

Knows nothing of SSE framing: ``edge.wire`` gives each browser format its bytes. When a client that is sent
away shall come back is decided here, because it depends on nothing but the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edge.core.cursor import Cursor
from edge.core.patience import Chance

ResetReason = Literal["expired", "future", "unknown", "gap"]
ReconnectReason = Literal["deadline", "rolling", "busy", "token_expired"]


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
class Reauth:
    """The caller's credentials end in so long: come back with others, and miss nothing."""

    in_ms: int


@dataclass(frozen=True, slots=True)
class Reconnect:
    """The server ends this stream on purpose; come back with the last id after ``retry_ms``."""

    reason: ReconnectReason
    retry_ms: int


SOON_MS = (50, 500)
"""Another edge serves at once, so all that a wait is good for is that not all come in the same moment."""
MS_PER_STREAM = 2
"""A full edge's 800 streams come back over 1.6 s: five hundred a second, for all other edges together."""
REAUTH_MS = 60_000
"""How long before its caller's credentials end a stream says so: time enough to fetch others."""
LATER_MS = (1_000, 5_000)
"""Nobody knows when the place or the journal will be there: coming back sooner would only add to the load."""


def decide_reconnect(reason: ReconnectReason, chance: Chance, *, streams: int = 0) -> Reconnect:
    """Return the end of a stream, jittered, one of ``streams`` that end together (P-SSE-15)."""
    low, high = LATER_MS if reason == "busy" else SOON_MS
    high = max(high, MS_PER_STREAM * streams)
    return Reconnect(reason, low + int((high - low) * chance.random()))


def decide_expiry(left_ms: int, chance: Chance) -> Reauth | Reconnect | None:
    """Return what a stream is told whose caller's credentials hold for ``left_ms`` more (P-SSE-21)."""
    if left_ms <= 0:
        return decide_reconnect("token_expired", chance)
    return Reauth(left_ms) if left_ms <= REAUTH_MS else None


Control = Rewind | Reset | CaughtUp | Status | Reauth | Reconnect
