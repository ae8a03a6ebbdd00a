"""What a turn is made of, as the runtime's own values.

Knows nothing of protobuf (``agent_runtime.wire`` translates) and nothing of asyncio. Every payload
says how a reader must treat it (``delivery``) and roughly what it weighs in a buffer (``weight``).
Member names of the enums are the protobuf names without their prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto
from typing import ClassVar

ENVELOPE_WEIGHT = 128
"""What an event weighs besides its text: ids, times and framing."""


class Delivery(StrEnum):
    """How the edge must treat an event."""

    STRUCTURAL = auto()
    COALESCABLE = auto()
    EPHEMERAL = auto()


class Safety(StrEnum):
    """Whether running a tool call again is safe."""

    READ_ONLY = auto()
    IDEMPOTENT = auto()
    UNSAFE = auto()


class Executor(StrEnum):
    """Where a tool runs."""

    RUNTIME = auto()
    PROVIDER = auto()
    CLIENT = auto()


class Outcome(StrEnum):
    """How a tool call ended. UNKNOWN was released; NOT_EXECUTED never was: do not merge them."""

    SUCCEEDED = auto()
    FAILED = auto()
    UNKNOWN = auto()
    NOT_EXECUTED = auto()


class MessageStatus(StrEnum):
    """Whether a message is whole."""

    COMPLETE = auto()
    INCOMPLETE = auto()
    DISCARDED = auto()


class SuspendReason(StrEnum):
    """Why an attempt ended before its turn."""

    CHECKPOINT = auto()
    INPUT_REQUIRED = auto()
    CLIENT_TOOL = auto()
    DRAINING = auto()


class TurnOutcome(StrEnum):
    """How a turn ended."""

    COMPLETED = auto()
    CANCELLED = auto()
    FAILED = auto()
    LIMIT_REACHED = auto()


class TurnLimit(StrEnum):
    """Which limit ended a turn."""

    MODEL_CALLS = auto()
    TOKENS = auto()
    DEADLINE = auto()
    ATTEMPTS = auto()


class CheckpointMode(StrEnum):
    """What a tool call does between its ToolCallStarted and its execution."""

    HOLD = auto()
    SUSPEND = auto()
    NONE = auto()


@dataclass(frozen=True, slots=True)
class TurnRef:
    """Identifies one attempt of one turn."""

    session_id: str
    turn_id: str
    attempt: int
    user_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a message: text, or structured data as JSON text, or a reference to a file."""

    text: str = ""
    data_json: str = ""
    uri: str = ""
    media_type: str = ""
    display_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What went wrong. ``message`` is for developers and never holds a user's words."""

    reason: str
    message: str = ""
    user_message: str = ""
    retryable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Model usage."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    model_calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            model_calls=self.model_calls + other.model_calls,
        )


class Payload:
    """What happened. Structural unless a subclass says otherwise."""

    __slots__ = ()
    delivery: ClassVar[Delivery] = Delivery.STRUCTURAL

    @property
    def weight(self) -> int:
        """Characters of text that the payload carries."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Payload):
    instance_id: str = ""
    input: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta(Payload):
    message_id: str
    text: str
    delivery: ClassVar[Delivery] = Delivery.COALESCABLE

    @property
    def weight(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True)
class ReasoningDelta(Payload):
    message_id: str
    text: str
    delivery: ClassVar[Delivery] = Delivery.COALESCABLE

    @property
    def weight(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCompleted(Payload):
    message_id: str
    text: str
    status: MessageStatus
    reasoning: str = ""
    usage: Usage | None = None
    provider_state: bytes = b""

    @property
    def weight(self) -> int:
        return len(self.text) + len(self.reasoning) + len(self.provider_state)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted(Payload):
    call_id: str
    tool: str
    arguments_json: str
    safety: Safety
    executor: Executor
    idempotency_key: str
    message_id: str = ""
    checkpoint_required: bool = False

    @property
    def weight(self) -> int:
        return len(self.arguments_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallProgress(Payload):
    call_id: str
    message: str
    fraction: float | None = None
    delivery: ClassVar[Delivery] = Delivery.COALESCABLE

    @property
    def weight(self) -> int:
        return len(self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFinished(Payload):
    call_id: str
    outcome: Outcome
    result_json: str = ""
    problem: Problem | None = None
    run_seconds: float = 0.0

    @property
    def weight(self) -> int:
        return len(self.result_json)


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change of one top-level key; ``None`` removes it."""

    key: str
    value_json: str | None


@dataclass(frozen=True, slots=True)
class StateDelta(Payload):
    changes: tuple[StateChange, ...]

    @property
    def weight(self) -> int:
        return sum(len(change.value_json or "") for change in self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReported(Payload):
    problem: Problem
    message_id: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSuspended(Payload):
    reason: SuspendReason
    pending: tuple[str, ...]
    prompt: str = ""
    response_schema_json: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished(Payload):
    outcome: TurnOutcome
    problem: Problem | None = None
    limit: TurnLimit | None = None
    final_message_id: str = ""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat(Payload):
    running: tuple[str, ...]
    delivery: ClassVar[Delivery] = Delivery.EPHEMERAL


@dataclass(frozen=True, slots=True)
class CustomEvent(Payload):
    name: str
    value_json: str

    @property
    def weight(self) -> int:
        return len(self.value_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A payload with its place in an attempt."""

    payload: Payload
    attempt: int
    index: int = 0
    event_id: str = ""
    author: str = ""
    emitted_at: float = 0.0
    """Wall-clock seconds since the Unix epoch."""

    @property
    def weight(self) -> int:
        return ENVELOPE_WEIGHT + self.payload.weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What to do with a call that started and did not finish: how it ended, or ``None`` to run it."""

    call_id: str
    finished: ToolCallFinished | None
