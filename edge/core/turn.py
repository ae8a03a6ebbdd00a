"""One turn, as far as it has come: a fold over its events and the decisions about it.

Knows nothing of seqs, slots or time. The owner folds events as it numbers them, every other reader as it
reads them from the log; both arrive at the same turn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum

from edge.core import drafts
from edge.core.event import (
    DELTAS,
    MESSAGE,
    PARKING,
    SUSPENDED,
    TERMINAL,
    TOOL_END,
    TOOL_START,
    TURN_START,
    Draft,
    Event,
)

EXECUTE = '{"execute":true}'
"""The decision that a pending call may run; see ``edge.core.log.Resolve``."""


PROGRESS = frozenset({MESSAGE, TOOL_START, TOOL_END})
"""What resets the budget of attempts. Not a suspension or a notice: a runtime that does no more than that and
crashes would be called for ever."""


class TurnState(Enum):
    """Where a turn stands. ``PARKED`` waits for a person or a browser and needs no writer."""

    RUNNING = "running"
    BETWEEN = "between"
    """Suspended at a checkpoint or by a draining runtime: the next attempt may start at once."""
    PARKED = "parked"
    FINISHED = "finished"


@dataclass(slots=True)
class Turn:
    """State of one turn. ``apply`` takes its events in log order."""

    turn_id: str
    agent: str = ""
    on_disconnect: str = "continue"
    pacing: str = "free"
    attempt: int = 0
    state: TurnState = TurnState.RUNNING
    cancelled: bool = False
    barren_attempts: int = 0
    """Attempts in a row, this one included, that have brought no message and no tool call."""
    calls: dict[str, str] = field(default_factory=dict)
    """Calls that have started and not ended, and where each runs: its executor."""
    known_calls: set[str] = field(default_factory=set)
    """Every call that has started."""
    deltas: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """``(type, data)`` of every message that has begun and is not settled."""
    pending: tuple[str, ...] = ()
    """Calls that the newest suspension waits for."""
    decisions: dict[str, str] = field(default_factory=dict)
    """What the next attempt is to be told of pending calls, as in ``edge.core.log.Resolve``."""
    settled: dict[str, str] = field(default_factory=dict)
    """Everything that was ever decided, so that a repeat is told from a contradiction."""

    @property
    def finished(self) -> bool:
        return self.state is TurnState.FINISHED

    @property
    def decided(self) -> bool:
        """Whether a parked turn has every answer that it waits for."""
        return bool(self.pending) and all(call in self.decisions for call in self.pending)

    @property
    def needs_writer(self) -> bool:
        """Whether some edge must drive the turn now (a parked turn waits without one)."""
        if self.finished:
            return False
        return self.state is not TurnState.PARKED or self.cancelled or self.decided

    def apply(self, event: Event | Draft) -> None:
        """Take in the next event of the turn."""
        if event.type in DELTAS:
            self.deltas.setdefault(event.subject, []).append((event.type, event.data))
            return
        if not event.structural:
            return
        if event.type == TURN_START:
            self._open_attempt(event)
            return
        if event.type in PROGRESS:
            self.barren_attempts = 0
        if event.type == MESSAGE:
            self.deltas.pop(event.subject, None)
        elif event.type == TOOL_START:
            self._open_call(event)
        elif event.type == TOOL_END:
            self.calls.pop(event.subject, None)
        elif event.type == SUSPENDED:
            self._suspend(event)
        elif event.type in TERMINAL:
            self.state = TurnState.FINISHED

    def decide(self, call_id: str, decision: str) -> None:
        """Take in a decision about a call that waits; the first one counts."""
        if call_id in self.pending and call_id not in self.settled:
            self.decisions[call_id] = self.settled[call_id] = decision

    def _open_attempt(self, event: Event | Draft) -> None:
        body = json.loads(event.data)
        self.attempt = body["attempt"]
        self.agent = body["agent"]
        if event.private:
            policy = json.loads(event.private)
            self.on_disconnect, self.pacing = policy["on_disconnect"], policy["pacing"]
        self.barren_attempts += 1
        self.state = TurnState.RUNNING
        self.deltas.clear()  # a new attempt withdraws every message that was not settled
        # A grant is good for one attempt: once that attempt is durable the tool may have run.
        self.pending = ()
        self.decisions = {c: d for c, d in self.decisions.items() if not _executes(d)}

    def _open_call(self, event: Event | Draft) -> None:
        body = json.loads(event.data)
        self.calls[event.subject] = body["executor"]
        self.known_calls.add(event.subject)

    def forget_call(self, call_id: str) -> None:
        """Undo a ``tool_start`` that will never be in the log."""
        self.calls.pop(call_id, None)
        self.known_calls.discard(call_id)

    def _suspend(self, event: Event | Draft) -> None:
        body = json.loads(event.data)
        self.pending = tuple(body["pending_call_ids"])
        parked = body["reason"] in PARKING
        self.state = TurnState.PARKED if parked else TurnState.BETWEEN

    def resolutions(self) -> tuple[tuple[str, str], ...]:
        """Return what the next attempt is told of calls without an end.

        A call that waited at a checkpoint was provably never released: it may run.
        """
        granted = dict(self.decisions)
        if self.state is TurnState.BETWEEN:
            granted |= dict.fromkeys(self.pending, EXECUTE)
        return tuple((c, d) for c, d in granted.items() if c in self.calls)

    def running_calls(self, shut: frozenset[str]) -> list[str]:
        """Return the calls that the runtime may be running, if the gates in ``shut`` are."""
        opened = ((c, executor) for c, executor in self.calls.items() if c not in shut)
        return [call_id for call_id, executor in opened if executor == "runtime"]

    def loose_ends(self, never_released: frozenset[str]) -> list[Draft]:
        """Return the events that must precede a terminal one, if the runtime did not send them.

        ``never_released`` names calls whose gate provably stayed shut; of any other call that
        could have run, nobody knows whether it did.
        """
        ends = [
            drafts.message_cut_short(self.turn_id, message_id, deltas)
            for message_id, deltas in self.deltas.items()
        ]
        shut = never_released | frozenset(self.pending)
        for call_id, executor in self.calls.items():
            idle = call_id in shut or executor == "client"
            outcome, reason = (
                ("not_executed", "TURN_ENDED") if idle else ("unknown", "OUTCOME_UNKNOWN")
            )
            ends.append(drafts.tool_end(self.turn_id, call_id, outcome, reason))
        return ends


def _executes(decision: str) -> bool:
    return bool(json.loads(decision).get("execute"))
