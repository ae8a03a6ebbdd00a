"""What callers ask of a session, already validated, and what they are told.

Knows nothing of HTTP bodies: ``edge.web`` reads those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edge.core.cursor import Cursor

OnDisconnect = Literal["continue", "cancel"]
Pacing = Literal["free", "viewer"]
Until = Literal["turn_end", "follow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One user input. Equal keys of one user in one session name one turn, for ever."""

    idempotency_key: str
    body_hash: str
    """SHA-256 of the canonical body: what tells a repeat from a reused key."""
    input: tuple[Mapping[str, object], ...]
    """Content parts, as PROTOCOL.md names them."""
    message_id: str = ""
    """What the caller itself calls the user's message, if it does."""
    agent: str = ""
    """Empty: the runtime's default."""
    on_disconnect: OnDisconnect = "continue"
    pacing: Pacing = "free"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The turn exists and is durable."""

    turn_id: str
    cursor: Cursor
    """Position right before the turn's first event."""
    replayed: bool
    """Whether an earlier request with the same key had started it."""
