"""What a turn came to: its events over all attempts, and short answers about them.

Pure. Knows nothing of how the turn was run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime.events import (
    Event,
    MessageCompleted,
    MessageStatus,
    Outcome,
    Payload,
    Problem,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnOutcome,
    TurnStarted,
    TurnSuspended,
)
from agent_runtime.ledger import open_ledger
from agent_runtime.testing.bodies import Execution


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One tool call of the turn."""

    call_id: str
    tool: str
    arguments: Any
    outcome: Outcome | None
    """``None`` while it has not ended."""
    result: Any = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One turn from its beginning to its end, or to where it was left."""

    events: tuple[Event, ...]
    """Every committed event, attempt after attempt, as the runtime emitted it."""
    journal: tuple[Event, ...]
    """The session's journal after the turn; hand it to the next turn as ``history``."""
    executions: tuple[Execution, ...]
    """Every run of a tool body, also the ones that a crash made unheard."""
    stop_seconds: float = 0.0
    """Loop time from the last cancel or crash until nothing of its attempt ran any more."""

    @property
    def payloads(self) -> Iterator[Payload]:
        """What happened, in order."""
        return (event.payload for event in self.events)

    @property
    def attempts(self) -> tuple[tuple[Event, ...], ...]:
        """The events of each attempt."""
        return split_attempts(self.events)

    @property
    def messages(self) -> tuple[MessageCompleted, ...]:
        """The settled messages, withdrawn ones left out."""
        return tuple(
            payload
            for payload in self.payloads
            if isinstance(payload, MessageCompleted)
            and payload.status is not MessageStatus.DISCARDED
        )

    @property
    def text(self) -> str:
        """What the agent said: the texts of its messages, joined by line breaks."""
        return "\n".join(message.text for message in self.messages if message.text)

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        """The tool calls, in the order of their starts."""
        ends = {end.call_id: end for end in self.payloads if isinstance(end, ToolCallFinished)}
        return tuple(
            _record(start, ends.get(start.call_id))
            for start in self.payloads
            if isinstance(start, ToolCallStarted)
        )

    @property
    def state(self) -> dict[str, Any]:
        """The session's state after the turn."""
        folded = open_ledger(self.journal, ()).state
        return {key: json.loads(text) for key, text in folded.items()}

    @property
    def ending(self) -> TurnFinished | None:
        """The terminal event; ``None`` if the turn was left unfinished."""
        last = self.events[-1].payload if self.events else None
        return last if isinstance(last, TurnFinished) else None

    @property
    def outcome(self) -> TurnOutcome | None:
        """How the turn ended; ``None`` if it was left unfinished."""
        return self.ending.outcome if self.ending is not None else None

    @property
    def waiting(self) -> TurnSuspended | None:
        """What an unfinished turn waits for."""
        last = self.events[-1].payload if self.events else None
        return last if isinstance(last, TurnSuspended) else None


def split_attempts(events: Sequence[Event]) -> tuple[tuple[Event, ...], ...]:
    """Cut events before each TurnStarted."""
    starts = [i for i, event in enumerate(events) if isinstance(event.payload, TurnStarted)]
    ends = [*starts[1:], len(events)]
    return tuple(tuple(events[start:end]) for start, end in zip(starts, ends, strict=True))


def _record(start: ToolCallStarted, end: ToolCallFinished | None) -> CallRecord:
    return CallRecord(
        call_id=start.call_id,
        tool=start.tool,
        arguments=json.loads(start.arguments_json),
        outcome=end.outcome if end is not None else None,
        result=json.loads(end.result_json) if end is not None and end.result_json else None,
        problem=end.problem if end is not None else None,
    )
