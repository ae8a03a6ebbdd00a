"""A recap: a session's newest turn as the log has it by now, for streams that tell a turn from its start.

Knows nothing of browser formats. Those of other makers know no cursor, so who comes back is told the whole
turn again, and what it came to is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

from edge.core.cursor import Cursor
from edge.core.event import TURN_START, Event
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
    """Calls that wait for a person or a browser, those already decided included."""


def recap_of(session: Session) -> Recap | None:
    """Return the newest turn; ``None`` if there is none whose start is kept."""
    turn = session.turn
    if turn is None:
        return None
    start = next(i for i, event in enumerate(session.history) if _starts(event, turn.turn_id))
    events = tuple(session.history[start:])
    parked = turn.state is TurnState.PARKED
    return Recap(
        turn_id=turn.turn_id,
        before=cursor_at(session.view.epoch_starts, events[0].seq - 1),
        events=events,
        finished=turn.finished,
        waiting=turn.pending if parked else (),
    )


def _starts(event: Event, turn_id: str) -> bool:
    return event.type == TURN_START and event.subject == turn_id
