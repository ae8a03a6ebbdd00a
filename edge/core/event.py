"""Events: the immutable entries of a session's log, and how the edge must treat each type.

Knows nothing of protobuf or SSE framing. ``data`` is opaque ASCII JSON text made once, so that a
replayed frame equals the live frame byte for byte. Showing an event looks at its envelope alone: ``type``,
``subject`` and ``structural``. What a turn is at (``edge.core.turn``) and what it is in the words of other
makers' kits (``edge.wire``) is read from the structural ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

TURN_START = "turn_start"
TOKEN = "token"
REASONING = "reasoning"
MESSAGE = "message"
TOOL_START = "tool_start"
TOOL_PROGRESS = "tool_progress"
TOOL_END = "tool_end"
STATE = "state"
NOTICE = "notice"
SUSPENDED = "suspended"
CUSTOM = "custom"
DONE = "done"
ERROR = "error"

DELTAS = frozenset({TOKEN, REASONING})
TERMINAL = frozenset({DONE, ERROR})
PARKING = frozenset({"input_required", "client_tool"})
"""Reasons of a ``suspended`` that a person or a browser ends; the edge itself goes on from every other one."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What happened, before the edge has given it a place in the log."""

    type: str
    data: str
    """One line of ASCII JSON, shown to browsers as it stands."""
    subject: str = ""
    """Id of the message or tool call that the event is about, if it is about one."""
    structural: bool = True
    """Committed before it is shown; otherwise it may be shown first and lost with its writer."""
    private: str = ""
    """JSON kept for the runtime (provider state, developer messages); no browser ever sees it."""
    index: int = 0
    """Position in its attempt, from 1; 0 when the edge itself wrote it."""
    gated: bool = False
    """A ``tool_start`` whose body waits for ``AckCheckpoint``."""


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a session's log. Its identity is ``(epoch, seq)`` and its content never changes."""

    epoch: int
    seq: int
    type: str
    data: str
    subject: str = ""
    structural: bool = True
    private: str = ""
    at_ms: int = 0
    """Wall-clock milliseconds at which the edge numbered it: for people, never for decisions."""

    @property
    def size_bytes(self) -> int:
        """What the event weighs in a buffer or a record (its text is ASCII)."""
        return len(self.data) + len(self.private) + len(self.subject)


def compact_json(value: Any) -> str:
    """Return ``value`` as one line of ASCII JSON.

    Raises:
        ValueError: for NaN or infinity, which no browser can read back.
    """
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
