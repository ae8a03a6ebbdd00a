"""Which field of which payload travels under which JSON key: the one table behind both directions.

Knows nothing of envelopes; ``edge.upstream.wire`` turns whole events with it. The keys and their
order are those of PROTOCOL.md, section "Events".
"""

from __future__ import annotations

from dataclasses import dataclass

from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core import event as types
from edge.upstream import fields as kinds
from edge.upstream.fields import Kind, Names

_TOOL_OUTCOMES: Names = {
    pb.TOOL_OUTCOME_SUCCEEDED: "succeeded",
    pb.TOOL_OUTCOME_FAILED: "failed",
    pb.TOOL_OUTCOME_UNKNOWN: "unknown",
    pb.TOOL_OUTCOME_NOT_EXECUTED: "not_executed",
}
_ROLES: Names = {pb.MESSAGE_ROLE_AGENT: "agent", pb.MESSAGE_ROLE_USER: "user"}
_STATUSES: Names = {
    pb.MESSAGE_STATUS_COMPLETE: "complete",
    pb.MESSAGE_STATUS_INCOMPLETE: "incomplete",
    pb.MESSAGE_STATUS_DISCARDED: "discarded",
}
_REPLAY_SAFETY: Names = {
    pb.REPLAY_SAFETY_READ_ONLY: "read_only",
    pb.REPLAY_SAFETY_IDEMPOTENT: "idempotent",
    pb.REPLAY_SAFETY_UNSAFE: "unsafe",
}
_EXECUTORS: Names = {
    pb.TOOL_EXECUTOR_RUNTIME: "runtime",
    pb.TOOL_EXECUTOR_PROVIDER: "provider",
    pb.TOOL_EXECUTOR_CLIENT: "client",
}
_SUSPEND_REASONS: Names = {
    pb.SUSPEND_REASON_CHECKPOINT: "checkpoint",
    pb.SUSPEND_REASON_INPUT_REQUIRED: "input_required",
    pb.SUSPEND_REASON_CLIENT_TOOL: "client_tool",
    pb.SUSPEND_REASON_DRAINING: "draining",
}
_TURN_OUTCOMES: Names = {
    pb.TURN_OUTCOME_COMPLETED: "completed",
    pb.TURN_OUTCOME_CANCELLED: "cancelled",
    pb.TURN_OUTCOME_LIMIT_REACHED: "limit",
}
_TURN_LIMITS: Names = {
    pb.TURN_LIMIT_MODEL_CALLS: "model_calls",
    pb.TURN_LIMIT_TOKENS: "tokens",
    pb.TURN_LIMIT_DEADLINE: "deadline",
    pb.TURN_LIMIT_ATTEMPTS: "attempts",
}

Fields = tuple[tuple[str, str, Kind], ...]
"""``(JSON key, protobuf field, kind)``, in the order of the JSON."""

TOOL_OUTCOME = kinds.enumerated(_TOOL_OUTCOMES)

_MESSAGE_ID = ("message_id", "message_id", kinds.ID)
_CALL_ID = ("call_id", "tool_call_id", kinds.ID)
_ERROR = ("error", "error", kinds.ERROR)
_ERROR_MESSAGE = ("error_message", "error", kinds.inside("message", kinds.OPTIONAL))
_USAGE = ("usage", "usage", kinds.USAGE)


@dataclass(frozen=True, slots=True)
class Shape:
    """How one payload of an ``AgentEvent`` travels."""

    payload: str
    """Name of the payload's field."""
    type: str
    """Type of the edge's event."""
    fields: Fields
    private: Fields = ()
    """What the runtime gets back and a browser never sees."""
    structural: bool = True


_DELTA: Fields = (_MESSAGE_ID, ("text", "text", kinds.VALUE))

TURN_FAILED = Shape(
    "turn_finished",
    types.ERROR,
    (
        ("code", "error", kinds.inside("reason", kinds.VALUE)),
        ("retryable", "error", kinds.inside("retryable", kinds.VALUE)),
        ("user_message", "error", kinds.inside("user_message", kinds.OPTIONAL)),
        _USAGE,
    ),
    (_ERROR_MESSAGE,),
)
TURN_FINISHED = Shape(
    "turn_finished",
    types.DONE,
    (
        ("outcome", "outcome", kinds.enumerated(_TURN_OUTCOMES)),
        ("limit", "limit", kinds.optional(kinds.enumerated(_TURN_LIMITS))),
        ("final_message_id", "final_message_id", kinds.OPTIONAL),
        _USAGE,
        _ERROR,
    ),
    (_ERROR_MESSAGE,),
)
CUSTOM = Shape(
    "custom_event",
    types.CUSTOM,
    (("name", "name", kinds.ID), ("value_json", "value_json", kinds.VALUE)),
)
TURN_STARTED = Shape(
    # The edge writes this one itself: it is only ever read back, for a runtime.
    "turn_started",
    types.TURN_START,
    (("input", "input", kinds.optional(kinds.PARTS)),),
)
PLAIN = (
    Shape("text_delta", types.TOKEN, _DELTA, structural=False),
    Shape("reasoning_delta", types.REASONING, _DELTA, structural=False),
    Shape(
        "message_completed",
        types.MESSAGE,
        (
            _MESSAGE_ID,
            ("role", "role", kinds.enumerated(_ROLES)),
            ("parts", "parts", kinds.PARTS),
            ("reasoning", "reasoning", kinds.OPTIONAL),
            ("status", "status", kinds.enumerated(_STATUSES)),
            _USAGE,
        ),
        (("provider_state", "provider_state", kinds.BASE64),),
    ),
    Shape(
        "tool_call_started",
        types.TOOL_START,
        (
            _CALL_ID,
            ("name", "tool_name", kinds.VALUE),
            ("arguments_json", "arguments_json", kinds.ARGUMENTS),
            ("message_id", "message_id", kinds.OPTIONAL),
            ("replay_safety", "replay_safety", kinds.enumerated(_REPLAY_SAFETY, unset="unsafe")),
            ("executor", "executor", kinds.enumerated(_EXECUTORS, unset="runtime")),
            ("checkpoint_required", "checkpoint_required", kinds.VALUE),
        ),
        (("idempotency_key", "idempotency_key", kinds.OPTIONAL),),
    ),
    Shape(
        "tool_call_progress",
        types.TOOL_PROGRESS,
        (
            _CALL_ID,
            ("message", "message", kinds.VALUE),
            ("fraction", "fraction", kinds.FRACTION),
            ("preliminary_result_json", "preliminary_result_json", kinds.OPTIONAL),
        ),
        structural=False,
    ),
    Shape(
        "tool_call_finished",
        types.TOOL_END,
        (
            _CALL_ID,
            ("outcome", "outcome", TOOL_OUTCOME),
            ("result_json", "result_json", kinds.OPTIONAL),
            _ERROR,
            ("duration_ms", "run_duration", kinds.MILLISECONDS),
        ),
        (_ERROR_MESSAGE,),
    ),
    Shape("state_delta", types.STATE, (("changes", "changes", kinds.CHANGES),)),
    Shape(
        "error_reported",
        types.NOTICE,
        (
            ("error", "error", kinds.required(kinds.ERROR)),
            ("message_id", "message_id", kinds.OPTIONAL),
            ("call_id", "tool_call_id", kinds.OPTIONAL),
        ),
        (_ERROR_MESSAGE,),
    ),
    Shape(
        "turn_suspended",
        types.SUSPENDED,
        (
            ("reason", "reason", kinds.enumerated(_SUSPEND_REASONS)),
            ("pending_call_ids", "pending_tool_call_ids", kinds.IDS),
            ("prompt", "prompt", kinds.OPTIONAL),
            ("response_schema_json", "response_schema_json", kinds.OPTIONAL),
        ),
    ),
)
