"""A session as one reader knows it: the log's view, its turns, and what a runtime is told of them.

Knows nothing of who reads or writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from edge.core.cursor import START, Cursor
from edge.core.event import TERMINAL, TURN_START, Event
from edge.core.log import AnyRecord, Cancel, Events, LogView, Resolve
from edge.core.turn import Turn


@dataclass(slots=True)
class Session:
    """Fold of a log's records. ``apply`` takes them in slot order."""

    view: LogView = field(default_factory=LogView)
    turn: Turn | None = None
    """The newest turn."""
    history: list[Event] = field(default_factory=list)
    """Every structural event, oldest first."""
    finished_turns: set[str] = field(default_factory=set)

    @property
    def busy(self) -> bool:
        """Whether a turn has begun and not ended."""
        return self.turn is not None and not self.turn.finished

    def apply(self, record: AnyRecord) -> None:
        """Take in the next record. Raises ``LogBroken`` as ``LogView.apply`` does."""
        self.view.apply(record)
        if isinstance(record, Events):
            for event in record.events:
                self.apply_event(event)
        elif isinstance(record, Cancel | Resolve):
            self.decide(record)

    def apply_event(self, event: Event) -> None:
        """Take in an event without its record: the owner does, as it numbers it."""
        if event.type == TURN_START:
            turn_id = json.loads(event.data)["turn_id"]
            if self.turn is None or self.turn.turn_id != turn_id:
                self.turn = Turn(turn_id)
        if event.structural:
            self.history.append(event)
        if self.turn is None:
            return  # the log began after this turn did: its start has expired
        self.turn.apply(event)
        if event.type in TERMINAL:
            self.finished_turns.add(self.turn.turn_id)

    def decide(self, record: Cancel | Resolve) -> None:
        """Obey a decision, if it is about the turn that is under way."""
        turn = self.turn
        if turn is None or turn.finished or turn.turn_id != record.turn_id:
            return
        if isinstance(record, Cancel):
            turn.cancelled = True
        else:
            turn.decide(record.call_id, record.decision)


def cursor_at(epoch_starts: tuple[tuple[int, int], ...], seq: int) -> Cursor:
    """Return the id of the event at ``seq`` (its epoch is the newest that began at or before it)."""
    if seq <= 0:
        return START
    epochs = [epoch for epoch, first_seq in epoch_starts if first_seq <= seq]
    # Older than every epoch still named: say so with epoch 0, as a reset does.
    return Cursor(max(epochs, default=0), seq)
