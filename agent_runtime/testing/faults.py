"""What a test can make happen to a turn, and after how many of its events.

Plain values; knows nothing of how a turn is run. Events are counted over the whole turn, attempt
after attempt, as they are committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from agent_runtime.events import Event, ToolCallStarted


class Act(Enum):
    """What happens."""

    CRASH = auto()
    CANCEL = auto()
    DRAIN = auto()
    HOLD = auto()


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that happens to a turn. Made by the functions of this module."""

    act: Act
    after: int = 0
    at_gate: bool = False

    def __str__(self) -> str:
        place = ", at the gate" if self.at_gate else ""
        return f"{self.act.name.lower()} after event {self.after}{place}"


def crash_after(events: int, *, at_gate: bool = False) -> Fault:
    """Lose the attempt, and whatever it has not committed, once that many events are.

    The edge then resumes the turn from its journal. By default the crash comes when the agent has
    gone on from there as far as it can at once: the tool that the last event lets run is running,
    or has run unheard. With ``at_gate`` it comes before that tool is let run.

    Raises:
        ValueError: ``events`` is below 1; so with the others.
    """
    return _fault(Act.CRASH, events, at_gate)


def cancel_after(events: int, *, at_gate: bool = False) -> Fault:
    """Stop the turn for its user once that many events are committed; ``at_gate`` as above."""
    return _fault(Act.CANCEL, events, at_gate)


def drain_after(events: int, *, at_gate: bool = False) -> Fault:
    """Move the turn to another process, as a deploy does: suspended between tools, then resumed."""
    return _fault(Act.DRAIN, events, at_gate)


def hold() -> Fault:
    """Acknowledge no checkpoint of the first attempt: its gates close, and the turn is resumed."""
    return Fault(Act.HOLD)


def faults_at(place: int, events: Sequence[Event], *acts: Act) -> list[Fault]:
    """Return the faults after the event at a place, from 1, and before the gate it may stand for."""
    payload = events[place - 1].payload
    gated = isinstance(payload, ToolCallStarted) and payload.checkpoint_required
    sides = (False, True) if gated else (False,)
    return [Fault(act, place, at_gate) for act in acts for at_gate in sides]


def _fault(act: Act, events: int, at_gate: bool) -> Fault:
    if events < 1:
        raise ValueError(f"a fault comes after 1 event or more, not after {events}")
    return Fault(act, events, at_gate)
