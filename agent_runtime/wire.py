"""The runtime's own events to protobuf and back.

Knows nothing of attempts or of gRPC. An enumerator is translated by name, so the names in
``agent_runtime.events`` are those of the contract. What this version does not know is skipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime.events import (
    CustomEvent,
    Delivery,
    ErrorReported,
    Event,
    Executor,
    Heartbeat,
    MessageCompleted,
    MessageStatus,
    Outcome,
    Part,
    Payload,
    Problem,
    ReasoningDelta,
    Resolution,
    Safety,
    StateChange,
    StateDelta,
    SuspendReason,
    TextDelta,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TurnFinished,
    TurnRef,
    TurnStarted,
    TurnSuspended,
    Usage,
)
from agent_runtime.ledger import joined_text

E = TypeVar("E", bound=StrEnum)

_DELIVERY = {
    member: pb.DeliveryClass.Value(f"DELIVERY_CLASS_{member.upper()}") for member in Delivery
}


def encode_event(event: Event) -> pb.AgentEvent:
    """Return the event as it goes over the wire."""
    encoded = _ENCODERS[type(event.payload)](event.payload)
    encoded.event_id = event.event_id
    encoded.index = event.index
    encoded.attempt = event.attempt
    encoded.emit_time.CopyFrom(_timestamp(event.emitted_at))
    encoded.delivery_class = _DELIVERY[event.payload.delivery]
    encoded.author = event.author
    return encoded


def decode_history(events: Iterable[pb.AgentEvent]) -> list[Event]:
    """Return the events that this version understands, in order."""
    decoded = []
    for event in events:
        kind = event.WhichOneof("payload")
        if kind is not None and kind in _DECODERS:
            payload = _DECODERS[kind](getattr(event, kind))
            decoded.append(Event(payload=payload, attempt=event.attempt, index=event.index))
    return decoded


def decode_turn(turn: pb.TurnRef) -> TurnRef:
    """Return which attempt of which turn is meant."""
    return TurnRef(turn.session_id, turn.turn_id, turn.attempt, turn.user_id)


def decode_parts(parts: Iterable[pb.ContentPart]) -> tuple[Part, ...]:
    """Return the parts of a message; parts of an unknown kind come out empty."""
    return tuple(_decode_part(part) for part in parts)


def decode_resolutions(resolutions: Iterable[pb.ToolCallResolution]) -> list[Resolution]:
    """Return the decisions; one that decides nothing is left out."""
    decoded = []
    for resolution in resolutions:
        decision = resolution.WhichOneof("decision")
        if decision == "finished":
            finished = _decode_finished(resolution.finished, call_id=resolution.tool_call_id)
            decoded.append(Resolution(call_id=resolution.tool_call_id, finished=finished))
        elif decision == "execute" and resolution.execute:
            decoded.append(Resolution(call_id=resolution.tool_call_id, finished=None))
    return decoded


def seconds_or(duration: Duration, default: float) -> float:
    """Return a duration in seconds, or the default where it is not positive."""
    seconds = duration.seconds + duration.nanos / 1e9
    return seconds if seconds > 0 else default


def _part(part: Part) -> pb.ContentPart:
    if part.uri:
        file = pb.FileRef(uri=part.uri, media_type=part.media_type, display_name=part.display_name)
        return pb.ContentPart(file=file)
    if part.data_json:
        return pb.ContentPart(data_json=part.data_json)
    return pb.ContentPart(text=part.text)


def _decode_part(part: pb.ContentPart) -> Part:
    return Part(
        text=part.text,
        data_json=part.data_json,
        uri=part.file.uri,
        media_type=part.file.media_type,
        display_name=part.file.display_name,
    )


def _problem(problem: Problem | None) -> pb.ErrorInfo | None:
    if problem is None:
        return None
    return pb.ErrorInfo(
        reason=problem.reason,
        message=problem.message,
        user_message=problem.user_message,
        retryable=problem.retryable,
    )


def _decode_problem(error: pb.ErrorInfo) -> Problem:
    return Problem(
        reason=error.reason,
        message=error.message,
        user_message=error.user_message,
        retryable=error.retryable,
    )


_USAGE_FIELDS = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "reasoning_tokens",
    "model_calls",
)


def _usage(usage: Usage | None) -> pb.Usage | None:
    if usage is None:
        return None
    return pb.Usage(**{name: getattr(usage, name) for name in _USAGE_FIELDS})


def _decode_usage(usage: pb.Usage) -> Usage:
    return Usage(**{name: getattr(usage, name) for name in _USAGE_FIELDS})


def _enum(kind: Any, prefix: str, member: StrEnum | None) -> Any:
    return kind.Value(f"{prefix}_{'UNSPECIFIED' if member is None else member.upper()}")


def _member(kind: type[E], prefix: str, name: str, default: E) -> E:
    """Return the member that an enumerator's name stands for."""
    try:
        return kind(name.removeprefix(f"{prefix}_").lower())
    except ValueError:
        return default


def _timestamp(seconds: float) -> Timestamp:
    fraction, whole = math.modf(seconds)
    return Timestamp(seconds=int(whole), nanos=int(fraction * 1e9))


def _duration(seconds: float) -> Duration:
    fraction, whole = math.modf(seconds)
    return Duration(seconds=int(whole), nanos=int(fraction * 1e9))


def _turn_started(payload: TurnStarted) -> pb.AgentEvent:
    started = pb.TurnStarted(
        instance_id=payload.instance_id, input=[_part(part) for part in payload.input]
    )
    return pb.AgentEvent(turn_started=started)


def _decode_turn_started(started: pb.TurnStarted) -> TurnStarted:
    return TurnStarted(instance_id=started.instance_id, input=decode_parts(started.input))


def _text_delta(payload: TextDelta) -> pb.AgentEvent:
    delta = pb.TextDelta(message_id=payload.message_id, text=payload.text)
    return pb.AgentEvent(text_delta=delta)


def _reasoning_delta(payload: ReasoningDelta) -> pb.AgentEvent:
    delta = pb.ReasoningDelta(message_id=payload.message_id, text=payload.text)
    return pb.AgentEvent(reasoning_delta=delta)


def _message_completed(payload: MessageCompleted) -> pb.AgentEvent:
    completed = pb.MessageCompleted(
        message_id=payload.message_id,
        role=pb.MESSAGE_ROLE_AGENT,
        parts=[pb.ContentPart(text=payload.text)] if payload.text else [],
        reasoning=payload.reasoning,
        status=_enum(pb.MessageStatus, "MESSAGE_STATUS", payload.status),
        usage=_usage(payload.usage),
        provider_state=payload.provider_state,
    )
    return pb.AgentEvent(message_completed=completed)


def _decode_message(completed: pb.MessageCompleted) -> MessageCompleted:
    status = pb.MessageStatus.Name(completed.status)
    return MessageCompleted(
        message_id=completed.message_id,
        text=joined_text(decode_parts(completed.parts)),
        status=_member(MessageStatus, "MESSAGE_STATUS", status, MessageStatus.COMPLETE),
        reasoning=completed.reasoning,
        usage=_decode_usage(completed.usage) if completed.HasField("usage") else None,
        provider_state=completed.provider_state,
    )


def _tool_started(payload: ToolCallStarted) -> pb.AgentEvent:
    started = pb.ToolCallStarted(
        tool_call_id=payload.call_id,
        tool_name=payload.tool,
        arguments_json=payload.arguments_json,
        message_id=payload.message_id,
        replay_safety=_enum(pb.ReplaySafety, "REPLAY_SAFETY", payload.safety),
        idempotency_key=payload.idempotency_key,
        executor=_enum(pb.ToolExecutor, "TOOL_EXECUTOR", payload.executor),
        checkpoint_required=payload.checkpoint_required,
    )
    return pb.AgentEvent(tool_call_started=started)


def _decode_started(started: pb.ToolCallStarted) -> ToolCallStarted:
    safety = pb.ReplaySafety.Name(started.replay_safety)
    executor = pb.ToolExecutor.Name(started.executor)
    return ToolCallStarted(
        call_id=started.tool_call_id,
        tool=started.tool_name,
        arguments_json=started.arguments_json or "{}",
        safety=_member(Safety, "REPLAY_SAFETY", safety, Safety.UNSAFE),
        executor=_member(Executor, "TOOL_EXECUTOR", executor, Executor.RUNTIME),
        idempotency_key=started.idempotency_key,
        message_id=started.message_id,
        checkpoint_required=started.checkpoint_required,
    )


def _progress(payload: ToolCallProgress) -> pb.AgentEvent:
    progress = pb.ToolCallProgress(
        tool_call_id=payload.call_id, message=payload.message, fraction=payload.fraction
    )
    return pb.AgentEvent(tool_call_progress=progress)


def _tool_finished(payload: ToolCallFinished) -> pb.AgentEvent:
    finished = pb.ToolCallFinished(
        tool_call_id=payload.call_id,
        outcome=_enum(pb.ToolOutcome, "TOOL_OUTCOME", payload.outcome),
        result_json=payload.result_json,
        error=_problem(payload.problem),
        run_duration=_duration(payload.run_seconds),
    )
    return pb.AgentEvent(tool_call_finished=finished)


def _decode_finished(finished: pb.ToolCallFinished, call_id: str = "") -> ToolCallFinished:
    outcome = pb.ToolOutcome.Name(finished.outcome)
    return ToolCallFinished(
        call_id=call_id or finished.tool_call_id,
        outcome=_member(Outcome, "TOOL_OUTCOME", outcome, Outcome.UNKNOWN),
        result_json=finished.result_json,
        problem=_decode_problem(finished.error) if finished.HasField("error") else None,
        run_seconds=seconds_or(finished.run_duration, 0.0),
    )


def _state_delta(payload: StateDelta) -> pb.AgentEvent:
    changes = [
        pb.StateChange(key=change.key, removed=True)
        if change.value_json is None
        else pb.StateChange(key=change.key, value_json=change.value_json)
        for change in payload.changes
    ]
    return pb.AgentEvent(state_delta=pb.StateDelta(changes=changes))


def _decode_state(delta: pb.StateDelta) -> StateDelta:
    return StateDelta(
        tuple(
            StateChange(change.key, None if change.removed else change.value_json)
            for change in delta.changes
        )
    )


def _error_reported(payload: ErrorReported) -> pb.AgentEvent:
    reported = pb.ErrorReported(
        error=_problem(payload.problem),
        message_id=payload.message_id,
        tool_call_id=payload.call_id,
    )
    return pb.AgentEvent(error_reported=reported)


def _decode_error(reported: pb.ErrorReported) -> ErrorReported:
    return ErrorReported(problem=_decode_problem(reported.error))


def _turn_suspended(payload: TurnSuspended) -> pb.AgentEvent:
    suspended = pb.TurnSuspended(
        reason=_enum(pb.SuspendReason, "SUSPEND_REASON", payload.reason),
        pending_tool_call_ids=payload.pending,
        prompt=payload.prompt,
        response_schema_json=payload.response_schema_json,
    )
    return pb.AgentEvent(turn_suspended=suspended)


def _decode_suspended(suspended: pb.TurnSuspended) -> TurnSuspended:
    reason = pb.SuspendReason.Name(suspended.reason)
    return TurnSuspended(
        reason=_member(SuspendReason, "SUSPEND_REASON", reason, SuspendReason.CHECKPOINT),
        pending=tuple(suspended.pending_tool_call_ids),
        prompt=suspended.prompt,
    )


def _turn_finished(payload: TurnFinished) -> pb.AgentEvent:
    finished = pb.TurnFinished(
        outcome=_enum(pb.TurnOutcome, "TURN_OUTCOME", payload.outcome),
        error=_problem(payload.problem),
        limit=_enum(pb.TurnLimit, "TURN_LIMIT", payload.limit),
        final_message_id=payload.final_message_id,
        usage=_usage(payload.usage),
    )
    return pb.AgentEvent(turn_finished=finished)


def _heartbeat(payload: Heartbeat) -> pb.AgentEvent:
    return pb.AgentEvent(heartbeat=pb.Heartbeat(running_tool_call_ids=payload.running))


def _custom(payload: CustomEvent) -> pb.AgentEvent:
    custom = pb.CustomEvent(name=payload.name, value_json=payload.value_json)
    return pb.AgentEvent(custom_event=custom)


def _decode_custom(custom: pb.CustomEvent) -> CustomEvent:
    return CustomEvent(custom.name, custom.value_json)


_ENCODERS: dict[type[Payload], Callable[[Any], pb.AgentEvent]] = {
    TurnStarted: _turn_started,
    TextDelta: _text_delta,
    ReasoningDelta: _reasoning_delta,
    MessageCompleted: _message_completed,
    ToolCallStarted: _tool_started,
    ToolCallProgress: _progress,
    ToolCallFinished: _tool_finished,
    StateDelta: _state_delta,
    ErrorReported: _error_reported,
    TurnSuspended: _turn_suspended,
    TurnFinished: _turn_finished,
    Heartbeat: _heartbeat,
    CustomEvent: _custom,
}

_DECODERS: dict[str, Callable[[Any], Payload]] = {
    "turn_started": _decode_turn_started,
    "message_completed": _decode_message,
    "tool_call_started": _decode_started,
    "tool_call_finished": _decode_finished,
    "state_delta": _decode_state,
    "error_reported": _decode_error,
    "turn_suspended": _decode_suspended,
    "custom_event": _decode_custom,
}
