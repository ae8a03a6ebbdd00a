"""What the model's log is made of: events, records, and appends on their way to the store.

Knows nothing of who may write what (``log``). Contents are reduced to what tells them apart: an event is
its epoch, its number within the epoch and its kind, so that two writers never say the same.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

TOKEN = "t"
OPENED = "O"  # turn_start of a turn's first attempt
RESUMED = "A"  # turn_start of a later attempt
TOOL_START = "S"
TOOL_END = "E"
UNKNOWN = "X"  # tool_end: nobody can say whether it ran
NOT_EXECUTED = "N"  # tool_end: it provably did not
SUSPENDED = "P"
DONE = "D"

TOOL_ENDS = frozenset((TOOL_END, UNKNOWN, NOT_EXECUTED))

ACQUIRE = "acquire"
EVENTS = "events"
CANCEL = "cancel"

FIRST_CANCELLER = 100
"""Senders from here on are cancellers; below they are edges' writer ids."""


class Event(NamedTuple):
    """Its place in the log is its seq; ``(epoch, seq)`` is what a browser names."""

    epoch: int
    number: int
    kind: str

    @property
    def structural(self) -> bool:
        return self.kind != TOKEN

    def __str__(self) -> str:
        return f"{self.epoch}{self.kind}"


Events = tuple[Event, ...]


class Record(NamedTuple):
    """What stands at a slot. Two records are the same only if every field is (rule L2)."""

    kind: str
    epoch: int
    writer: int
    base: int
    """How many events the log holds before it."""
    events: Events = ()
    turn: int = 0
    """The turn that a cancel names."""

    def __str__(self) -> str:
        if self.kind == CANCEL:
            return f"CANCEL(turn {self.turn})"
        who = "AB"[self.writer & 1] + str(self.writer >> 1)
        return f"{self.kind.upper()}{self.epoch}/{who}@{self.base + 1}{show_events(self.events)}"


class Message(NamedTuple):
    """An append on its way: it may arrive late, twice, or never."""

    sender: int
    slot: int
    record: Record


def writer_id(edge: int, life: int) -> int:
    """Return the name that a process writes under; ``life`` counts its starts."""
    return edge + 2 * life


def is_own(record: Record, sent: Record, *, by_content: bool) -> bool:
    """Whether what stands at a slot is what was sent there; ``by_content``: whoever sent it (a mutant)."""
    if by_content and sent.kind != CANCEL:
        record = record._replace(writer=sent.writer)
    return record == sent


def show_events(events: Events) -> str:
    """Return the events as a trace prints them."""
    return "[" + " ".join(map(str, events)) + "]"


def starts_tool(events: Events) -> bool:
    """Whether a ``tool_start`` is among the events."""
    return any(event.kind == TOOL_START for event in events)


def without_tool_starts(events: Events) -> Events:
    """Return what a cancel leaves of an uncommitted buffer."""
    return tuple(event for event in events if event.kind != TOOL_START)


class Turn(NamedTuple):
    """The newest turn of a run of events."""

    number: int
    attempt: int
    """Its newest durable or numbered attempt; 0 if attempts are not modelled."""
    kinds: str
    """The kinds of its events, in order."""

    @property
    def finished(self) -> bool:
        return DONE in self.kinds

    @property
    def started(self) -> bool:
        return TOOL_START in self.kinds

    @property
    def ended(self) -> bool:
        return not TOOL_ENDS.isdisjoint(self.kinds)

    @property
    def since_end(self) -> str:
        """The kinds from the tool's end on."""
        return self.kinds[max(self.kinds.find(end) for end in TOOL_ENDS) :]

    @property
    def pending(self) -> bool:
        """Whether the call waits at a checkpoint that no attempt has passed yet."""
        return SUSPENDED in self.kinds and RESUMED not in self.kinds.split(SUSPENDED)[-1]

    @property
    def was_pending(self) -> bool:
        """Whether the call has ever waited at a checkpoint."""
        return SUSPENDED in self.kinds


@cache
def newest_turn(events: Events) -> Turn:
    """Return the turn that the events end with."""
    kinds = "".join(event.kind for event in events)
    opened = kinds.count(OPENED)
    kinds = kinds[max(kinds.rfind(OPENED), 0) :]
    return Turn(max(opened, 1), min(opened, 1) + kinds.count(RESUMED), kinds)
