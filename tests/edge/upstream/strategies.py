"""Hypothesis strategies for the events of a correct runtime, with hostile text."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.duration_pb2 import Duration
from hypothesis import strategies as st
from unbroken.v1 import agent_runtime_pb2 as pb

HOSTILE = ("\r\n\r\nid: 9-9\nevent: done\n\n", "\u2028\u2029\x00\x7f", '"}\\', "\U0001f600", "")

_characters = st.characters(exclude_categories=["Cs"])
text = st.text(_characters, max_size=20) | st.sampled_from(HOSTILE)
ids = st.text(_characters, min_size=1, max_size=8)
json_text = (st.integers() | text | st.lists(st.booleans(), max_size=3)).map(json.dumps)


def set_values(enum: EnumDescriptor) -> st.SearchStrategy[Any]:
    """Return every value of an enum but its unset one."""
    return st.sampled_from([value.number for value in enum.values if value.number])


def _field_enum(message: Any, field: str) -> st.SearchStrategy[Any]:
    return set_values(message.DESCRIPTOR.fields_by_name[field].enum_type)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def _counts(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, 2**bits - 1)


part = st.one_of(
    st.builds(pb.ContentPart, text=text),
    st.builds(pb.ContentPart, data_json=json_text),
    st.builds(pb.FileRef, uri=text, media_type=text, display_name=text).map(
        lambda file: pb.ContentPart(file=file)
    ),
)
usage = st.builds(
    pb.Usage,
    input_tokens=st.integers(1, 2**53 - 1),
    output_tokens=_counts(53),
    cached_input_tokens=_counts(53),
    reasoning_tokens=_counts(53),
    model_calls=_counts(31),
)
error = st.builds(
    pb.ErrorInfo, reason=text, message=text, user_message=text, retryable=st.booleans()
)
duration = st.integers(0, 10**9).map(
    lambda ms: Duration(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)
)
change = st.builds(pb.StateChange, key=text, value_json=json_text) | st.builds(
    pb.StateChange, key=text, removed=st.just(True)
)
message_completed = st.builds(
    pb.MessageCompleted,
    message_id=ids,
    role=_field_enum(pb.MessageCompleted, "role"),
    parts=st.lists(part, max_size=3),
    reasoning=text,
    status=_field_enum(pb.MessageCompleted, "status"),
    usage=_maybe(usage),
    provider_state=st.binary(max_size=20),
)
tool_call_started = st.builds(
    pb.ToolCallStarted,
    tool_call_id=ids,
    tool_name=text,
    arguments_json=json_text,
    message_id=text,
    replay_safety=_field_enum(pb.ToolCallStarted, "replay_safety"),
    idempotency_key=text,
    executor=_field_enum(pb.ToolCallStarted, "executor"),
    checkpoint_required=st.booleans(),
)
tool_call_progress = st.builds(
    pb.ToolCallProgress,
    tool_call_id=ids,
    message=text,
    fraction=_maybe(st.floats(0, 1)),
    preliminary_result_json=json_text,
)
tool_call_finished = st.builds(
    pb.ToolCallFinished,
    tool_call_id=ids,
    outcome=_field_enum(pb.ToolCallFinished, "outcome"),
    result_json=json_text,
    error=_maybe(error),
    run_duration=_maybe(duration),
)
state_delta = st.builds(pb.StateDelta, changes=st.lists(change, max_size=3))
error_reported = st.builds(pb.ErrorReported, error=error, message_id=text, tool_call_id=text)
turn_suspended = st.builds(
    pb.TurnSuspended,
    reason=_field_enum(pb.TurnSuspended, "reason"),
    pending_tool_call_ids=st.lists(text, max_size=3),
    prompt=text,
    response_schema_json=json_text,
)
turn_failed = st.builds(
    pb.TurnFinished,
    outcome=st.just(pb.TURN_OUTCOME_FAILED),
    error=error,
    usage=_maybe(usage),
)
turn_ended = st.builds(
    pb.TurnFinished,
    outcome=_field_enum(pb.TurnFinished, "outcome").filter(
        lambda outcome: outcome != pb.TURN_OUTCOME_FAILED
    ),
    error=_maybe(error),
    limit=st.just(0) | _field_enum(pb.TurnFinished, "limit"),
    final_message_id=text,
    usage=_maybe(usage),
)

_PAYLOADS: dict[str, st.SearchStrategy[Any]] = {
    "message_completed": message_completed,
    "tool_call_started": tool_call_started,
    "tool_call_progress": tool_call_progress,
    "tool_call_finished": tool_call_finished,
    "state_delta": state_delta,
    "error_reported": error_reported,
    "turn_suspended": turn_suspended,
    "turn_finished": turn_failed | turn_ended,
    "custom_event": st.builds(pb.CustomEvent, name=ids, value_json=json_text),
    "text_delta": st.builds(pb.TextDelta, message_id=ids, text=text),
    "reasoning_delta": st.builds(pb.ReasoningDelta, message_id=ids, text=text),
}
_COALESCABLE = {"text_delta", "reasoning_delta", "tool_call_progress"}


@st.composite
def events(draw: st.DrawFn) -> pb.AgentEvent:
    """Draw an event of any kind that is journaled, as its runtime sends it."""
    kind = draw(st.sampled_from(sorted(_PAYLOADS)))
    coalescable = kind in _COALESCABLE or (kind == "custom_event" and draw(st.booleans()))
    event = pb.AgentEvent(
        event_id=draw(ids),
        index=draw(st.integers(1, 2**63 - 1)),
        attempt=draw(st.integers(1, 2**31 - 1)),
        delivery_class=(
            pb.DELIVERY_CLASS_COALESCABLE if coalescable else pb.DELIVERY_CLASS_STRUCTURAL
        ),
        author=draw(text),
        parent_tool_call_id=draw(text),
    )
    event.emit_time.FromMilliseconds(draw(st.integers(0, 10**12)))
    getattr(event, kind).CopyFrom(draw(_PAYLOADS[kind]))
    return event
