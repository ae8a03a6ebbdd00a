"""Whether an event of a runtime enters the log: the edge's part of the protocol's policing.

Knows nothing of the stream's own order (``edge.upstream`` checks indexes), only of the turn so far.
"""

from __future__ import annotations

from edge.core.event import TOOL_END, TOOL_PROGRESS, TOOL_START, Draft
from edge.core.turn import Turn

DROP = "drop"
PROTOCOL_ERROR = "runtime_protocol_error"
TOO_LARGE = "event_too_large"


class Intake:
    """Judges drafts in order. Remembers the calls that a cancel kept out of the log."""

    def __init__(self, turn: Turn, event_limit_bytes: int) -> None:
        self._turn = turn
        self._event_limit_bytes = event_limit_bytes
        self._taken_back: set[str] = set()

    def take_back(self, call_id: str) -> None:
        """The call's ``tool_start`` will never be in the log, so nothing else of it may be."""
        self._taken_back.add(call_id)

    def refuses(self, draft: Draft) -> str | None:
        """Return ``None`` to let the event in, ``DROP``, or the reason that ends the turn."""
        turn = self._turn
        if turn.finished:
            return DROP
        if draft.type == TOOL_START and draft.subject in turn.known_calls:
            return PROTOCOL_ERROR
        if draft.type == TOOL_START and turn.cancelled:
            self.take_back(draft.subject)
            return DROP
        if draft.subject in self._taken_back and draft.type in (TOOL_END, TOOL_PROGRESS):
            return DROP
        if len(draft.data) + len(draft.private) > self._event_limit_bytes:
            return TOO_LARGE
        if draft.type == TOOL_END and draft.subject not in turn.calls:
            return PROTOCOL_ERROR
        return None
