"""What the edge asks of a runtime, as protobuf requests.

Knows nothing of calls and channels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from google.protobuf.duration_pb2 import Duration
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core.errors import LogBroken
from edge.ports import AttemptCall, AttemptRef
from edge.upstream.fields import write_part
from edge.upstream.shapes import TOOL_OUTCOME
from edge.upstream.wire import to_agent_event

CHECKPOINT_MODES = {
    "hold": pb.CHECKPOINT_MODE_HOLD,
    "suspend": pb.CHECKPOINT_MODE_SUSPEND,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """How every turn runs, and how long the edge bears silence."""

    checkpoint_mode: Literal["hold", "suspend"] = "hold"
    hold_timeout_seconds: float = 10.0
    """How long a tool waits at its gate; shorter than the lease, so a stale edge cannot release."""
    heartbeat_seconds: float = 10.0
    """Longest silence that the runtime is asked to leave."""
    idle_seconds: float = 60.0
    """Silence after which an attempt counts as dead; several heartbeats long."""


def run_turn(call: AttemptCall, options: RuntimeOptions) -> pb.RunTurnRequest:
    """Return the request that starts a turn. Raises ``LogBroken`` as ``to_agent_event`` does."""
    return pb.RunTurnRequest(
        turn=turn_ref(call.ref),
        agent=call.agent,
        input=_input(call),
        history=[to_agent_event(event) for event in call.history],
        options=_turn_options(options),
    )


def resume_turn(call: AttemptCall, options: RuntimeOptions) -> pb.ResumeTurnRequest:
    """Return the request that continues a turn. Raises ``LogBroken`` as ``to_agent_event`` does."""
    return pb.ResumeTurnRequest(
        turn=turn_ref(call.ref),
        agent=call.agent,
        history=[to_agent_event(event) for event in call.history],
        resolutions=[_resolution(call_id, decision) for call_id, decision in call.resolutions],
        input=_input(call),
        options=_turn_options(options),
    )


def turn_ref(ref: AttemptRef) -> pb.TurnRef:
    """Return the message that names an attempt."""
    return pb.TurnRef(
        session_id=ref.session_id,
        turn_id=ref.turn_id,
        attempt=ref.attempt,
        user_id=ref.user_id,
    )


def duration(seconds: float) -> Duration:
    """Return ``seconds`` to the millisecond."""
    result = Duration()
    result.FromMilliseconds(round(seconds * 1000))
    return result


def _turn_options(options: RuntimeOptions) -> pb.TurnOptions:
    return pb.TurnOptions(
        checkpoint_mode=CHECKPOINT_MODES[options.checkpoint_mode],
        hold_timeout=duration(options.hold_timeout_seconds),
        heartbeat_interval=duration(options.heartbeat_seconds),
    )


def _input(call: AttemptCall) -> list[pb.ContentPart]:
    try:
        return [write_part(part) for part in call.input]
    except (KeyError, TypeError, ValueError):
        raise LogBroken(f"input of turn {call.ref.turn_id} cannot be read") from None


def _resolution(call_id: str, decision: str) -> pb.ToolCallResolution:
    try:
        return _decided(call_id, json.loads(decision))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise LogBroken(f"decision about call {call_id} cannot be read") from None


def _decided(call_id: str, decided: dict[str, str]) -> pb.ToolCallResolution:
    if decided.get("execute"):
        return pb.ToolCallResolution(tool_call_id=call_id, execute=True)
    finished = pb.ToolCallFinished(tool_call_id=call_id, result_json=decided.get("result_json", ""))
    TOOL_OUTCOME.write(finished, "outcome", decided["outcome"])
    if "reason" in decided:
        finished.error.reason = decided["reason"]
        finished.error.user_message = decided.get("user_message", "")
    return pb.ToolCallResolution(tool_call_id=call_id, finished=finished)
