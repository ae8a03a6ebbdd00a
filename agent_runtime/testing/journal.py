"""What an edge keeps of one turn, in memory: committed events, gates and decisions.

Pure: a fold over events. Knows nothing of asyncio, agents or faults. It hands history back as an
edge does: its own form of TurnStarted, structural events alone, and an attempt's number with no
other event.

Invariants:
- A permission to run is good for one attempt; every other decision is repeated until its end is in.
- A call may run again on the edge's word only if its gate provably stayed shut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent_runtime.events import (
    Delivery,
    Event,
    Part,
    Resolution,
    SuspendReason,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnRef,
    TurnStarted,
    TurnSuspended,
)
from agent_runtime.ledger import Ledger, open_ledger, reopen_ledger, split_turns
from agent_runtime.testing.answers import Answers, decide_answer

_PARKED = (SuspendReason.INPUT_REQUIRED, SuspendReason.CLIENT_TOOL)


class Journal:
    """The journal of one turn, behind those of the session's earlier ones."""

    def __init__(self, parts: tuple[Part, ...], earlier: Iterable[Event] = ()) -> None:
        self.events: list[Event] = []
        """Every committed event of the turn, as the runtime emitted it."""
        self._parts = parts
        self._earlier = tuple(earlier)
        self._kept: list[Event] = []
        self._turn = TurnRef("s", f"t{len(split_turns(self._earlier)) + 1}", 0, "u")
        self._calls: dict[str, ToolCallStarted] = {}
        """Calls that have started and not ended."""
        self._shut: set[str] = set()
        """Calls of the running attempt whose gate nobody opened."""
        self._decided: dict[str, Resolution] = {}
        self._suspended: TurnSuspended | None = None
        self._finished = False

    @property
    def history(self) -> tuple[Event, ...]:
        """The session's journal, this turn included."""
        return *self._earlier, *self._kept

    def begin(self) -> tuple[TurnRef, Ledger]:
        """Note the next attempt as begun, and return what its runtime is told."""
        resolutions = self._resolutions()
        self._decided = {c: r for c, r in self._decided.items() if r.finished is not None}
        self._shut.clear()
        self._suspended = None
        attempt = self._turn.attempt + 1
        self._turn = replace(self._turn, attempt=attempt)
        parts = self._parts if attempt == 1 else ()
        self._kept.append(Event(payload=TurnStarted(input=parts), attempt=attempt))
        if attempt == 1:
            return self._turn, open_ledger(self._earlier, parts)
        return self._turn, reopen_ledger(self.history, attempt=attempt, resolutions=resolutions)

    def commit(self, event: Event) -> None:
        """Make an event durable."""
        self.events.append(event)
        if event.payload.delivery is not Delivery.STRUCTURAL:
            return
        if not isinstance(event.payload, TurnStarted):
            self._kept.append(replace(event, attempt=0, index=0))
        match event.payload:
            case ToolCallStarted() as started:
                self._calls[started.call_id] = started
                if started.checkpoint_required:
                    self._shut.add(started.call_id)
            case ToolCallFinished(call_id=call_id):
                self._calls.pop(call_id, None)
            case TurnSuspended() as suspended:
                self._suspended = suspended
            case TurnFinished():
                self._finished = True

    def open_gate(self, call_id: str) -> None:
        """Note that a call is being let run."""
        self._shut.discard(call_id)

    def needs_attempt(self, answers: Answers) -> bool:
        """Whether another attempt is due; asks for the answers that the turn waits for."""
        if self._finished:
            return False
        if self._suspended is None or self._suspended.reason not in _PARKED:
            return True
        for call_id in self._suspended.pending:
            resolution = decide_answer(self._calls[call_id], answers)
            if resolution is not None:
                self._decided.setdefault(call_id, resolution)
        return self._decided.keys() >= set(self._suspended.pending)

    def _resolutions(self) -> list[Resolution]:
        """Say what the next attempt is to do with the calls that have no end."""
        granted = set(self._shut)
        if self._suspended is not None and self._suspended.reason not in _PARKED:
            granted.update(self._suspended.pending)
        execute = {c: Resolution(call_id=c, finished=None) for c in granted}
        return [*(execute | self._decided).values()]
