"""The cursor: what a client last saw, as ``<epoch>-<seq>`` in the SSE id and ``Last-Event-ID``.

Knows nothing of what the numbers point at: ``edge.core.replay`` decides that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from edge.core.errors import InvalidCursor

# Short, and only of bytes that need no CORS preflight on a reconnect (WHATWG Fetch): see
# PROTOCOL.md. Leading zeros are refused so that one position has one spelling.
_GRAMMAR = re.compile(r"(0|[1-9][0-9]{0,8})-(0|[1-9][0-9]{0,11})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A position in a session's log: the epoch whose numbering it belongs to, and the seq."""

    epoch: int
    seq: int

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read a ``Last-Event-ID``.

        Raises:
            InvalidCursor: unless the text is exactly an id that this edge could have sent.
        """
        match = _GRAMMAR.fullmatch(text)
        if match is None:
            raise InvalidCursor
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.epoch}-{self.seq}"


START = Cursor(0, 0)
