"""A recap: a session's newest turn as the log has it by now, for streams that tell a turn from its start.

Knows nothing of browser formats. Those of other makers know no cursor, so who comes back is told the whole
turn again, and what it came to is known beforehand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from edge.core.cursor import Cursor
from edge.core.event import PARKING, SUSPENDED, TURN_START, Event
from edge.core.session import Session, cursor_at
from edge.core.turn import TurnState


@dataclass(frozen=True, slots=True)
class Recap:
    """One turn, as far as it has come."""

    turn_id: str
    before: Cursor
    """Position right before the turn's first event."""
    events: tuple[Event, ...]
    """The turn's structural events so far, oldest first."""
    finished: bool
    waiting: tuple[str, ...]
    """Calls that wait for a person or a browser to decide them."""

    @property
    def suspension(self) -> Event | None:
        """The newest event at which the turn waited for a person or a browser, even if it has gone on since."""
        return next(filter(_parks, reversed(self.events)), None)


def recap_of(session: Session, turn_id: str = "") -> Recap | None:
    """Return the turn, by default the newest one; ``None`` if its start is not kept, or never was."""
    newest = session.turn
    if newest is None:
        return None
    events = _events_of(session.history, turn_id or newest.turn_id)
    if not events:
        return None
    current = turn_id in ("", newest.turn_id)
    parked = current and newest.state is TurnState.PARKED
    return Recap(
        turn_id=events[0].subject,
        before=cursor_at(session.view.epoch_starts, events[0].seq - 1),
        events=events,
        finished=newest.finished or not current,
        waiting=tuple(c for c in newest.pending if c not in newest.decisions) if parked else (),
    )


def _parks(event: Event) -> bool:
    return event.type == SUSPENDED and json.loads(event.data)["reason"] in PARKING


def _events_of(history: Sequence[Event], turn_id: str) -> tuple[Event, ...]:
    """Return the events of one turn: they stand together, because a session has one turn at a time."""
    starts = [(i, e.subject) for i, e in enumerate(history) if e.type == TURN_START]
    begin = next((i for i, subject in starts if subject == turn_id), len(history))
    end = next((i for i, subject in starts if i > begin and subject != turn_id), len(history))
    return tuple(history[begin:end])
