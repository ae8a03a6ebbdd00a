"""What makes a stream of events right, whoever emitted it.

Pure. Knows nothing of how a turn is run. The rules are P-RUN-1, P-EVT-1 to P-EVT-4 and P-EVT-6 of
proto/PROTOCOL.md, as far as they can be told from one turn's events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_runtime.events import (
    Event,
    Heartbeat,
    MessageCompleted,
    MessageStatus,
    ReasoningDelta,
    TextDelta,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TurnFinished,
    TurnStarted,
    TurnSuspended,
)
from agent_runtime.testing.tokens import point
from agent_runtime.testing.transcript import Transcript


def assert_well_formed(stream: Transcript | Sequence[Event]) -> None:
    """Check that a turn's stream keeps the protocol's rules.

    The turn begins with its start and ends once, or waits for somebody; nothing follows the end.
    Indexes are contiguous. A message restates its deltas, and has none after it was settled. Each
    call starts once and ends once. At the end no message is open and no call without an end.

    Raises:
        AssertionError: it does not; the text says what is wrong, and points at the place.
    """
    events = stream.events if isinstance(stream, Transcript) else stream
    turn = _Turn()
    place = 0
    try:
        for place, event in enumerate(events):  # noqa: B007 - the place of the first fault
            turn.take(event)
        place = len(events)
        turn.close()
    except _Broken as broken:
        raise AssertionError(f"{broken}:\n{point(events, place)}") from None


class _Broken(Exception):
    """A rule is broken; the text says which."""


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _Broken(otherwise)


@dataclass(slots=True)
class _Said:
    """What the deltas of an open message have said."""

    text: str = ""
    reasoning: str = ""


@dataclass(slots=True)
class _Turn:
    """What has been seen of a turn."""

    attempt: int = 0
    index: int = 0
    suspended: bool = False
    finished: bool = False
    open_messages: dict[str, _Said] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    open_calls: set[str] = field(default_factory=set)
    known_calls: set[str] = field(default_factory=set)

    def take(self, event: Event) -> None:
        """Take in the next event."""
        self._check_place(event)
        match event.payload:
            case TextDelta(message_id=message_id, text=text):
                self._open(message_id).text += text
            case ReasoningDelta(message_id=message_id, text=text):
                self._open(message_id).reasoning += text
            case MessageCompleted() as message:
                self._settle(message)
            case ToolCallStarted(call_id=call_id):
                _require(call_id not in self.known_calls, f"{call_id} starts twice")
                self.known_calls.add(call_id)
                self.open_calls.add(call_id)
            case ToolCallProgress(call_id=call_id):
                _require(call_id in self.open_calls, f"progress of {call_id}, which does not run")
            case ToolCallFinished(call_id=call_id):
                _require(call_id in self.known_calls, f"{call_id} ends and never started")
                _require(call_id in self.open_calls, f"{call_id} ends twice")
                self.open_calls.remove(call_id)
            case TurnSuspended():
                self.suspended = True
            case TurnFinished():
                self._finish()

    def close(self) -> None:
        """Judge the end of the stream."""
        _require(self.attempt > 0, "the stream is empty")
        _require(self.finished or self.suspended, "the stream stops before the turn ends")

    def _check_place(self, event: Event) -> None:
        _require(not self.finished, "an event follows the end of the turn")
        if isinstance(event.payload, TurnStarted):
            self._begin(event)
        _require(self.attempt > 0, "the turn does not begin with its start")
        _require(not self.suspended, "an event follows the suspension of its attempt")
        _require(
            event.attempt == self.attempt,
            f"an event of attempt {event.attempt} in attempt {self.attempt}",
        )
        due = self.index + (0 if isinstance(event.payload, Heartbeat) else 1)
        _require(event.index == due, f"index {event.index} where {due} was due")
        self.index = due

    def _begin(self, event: Event) -> None:
        _require(
            event.attempt > self.attempt, f"attempt {event.attempt} follows attempt {self.attempt}"
        )
        self.attempt, self.index, self.suspended = event.attempt, 0, False
        self.open_messages.clear()  # a new attempt withdraws what was not settled

    def _open(self, message_id: str) -> _Said:
        _require(message_id not in self.settled, f"a delta of {message_id}, which is settled")
        return self.open_messages.setdefault(message_id, _Said())

    def _settle(self, message: MessageCompleted) -> None:
        _require(message.message_id not in self.settled, f"{message.message_id} is settled twice")
        self.settled.add(message.message_id)
        said = self.open_messages.pop(message.message_id, None)
        if said is None or message.status is MessageStatus.DISCARDED:
            return
        restated = _Said(message.text, message.reasoning)
        _require(said == restated, f"{message.message_id} does not restate its deltas")

    def _finish(self) -> None:
        unsettled = sorted(self.open_messages)
        _require(not unsettled, f"the turn ends before {', '.join(unsettled)} is settled")
        running = sorted(self.open_calls)
        _require(not running, f"the turn ends before {', '.join(running)} does")
        self.finished = True
