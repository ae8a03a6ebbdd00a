"""A runtime's events to drafts of the edge's events, and journaled events back to the runtime's form.

Knows nothing of gRPC calls or of the order of events. Both directions read one table
(``edge.upstream.shapes``), so they agree by construction. JSON text of the runtime travels as a
JSON string, exactly as it came: integers beyond 2**53 and the order of keys survive.

Not kept: ``event_id``, ``index``, ``attempt`` and ``emit_time``, which belong to one attempt, and
the ``final_message_id`` of a turn that failed.
"""

from __future__ import annotations

import json
from functools import lru_cache
from json.encoder import encode_basestring_ascii  # in C: a token may cost no more
from typing import Any

from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core.errors import LogBroken
from edge.core.event import ERROR, REASONING, TOKEN, TURN_START, Draft, Event, compact_json
from edge.upstream.fields import EventTooLarge, WireFault
from edge.upstream.shapes import (
    CUSTOM,
    PLAIN,
    TURN_FAILED,
    TURN_FINISHED,
    TURN_STARTED,
    Fields,
    Shape,
)

MAX_EVENT_BYTES = 256 * 1024
"""Size of an event's public JSON, and of its private JSON: together they fit in one record."""

_FRAMES_KEPT = 4096
"""Messages whose frame is remembered: a few for every turn that runs in one process."""

_WITHOUT_DRAFT = frozenset({"turn_started", "heartbeat"})
"""Known payloads that are no event of the edge's: it writes its own start of an attempt."""

_BY_PAYLOAD = {shape.payload: shape for shape in (*PLAIN, CUSTOM, TURN_FINISHED)}
_BY_TYPE = {
    shape.type: shape for shape in (*PLAIN, CUSTOM, TURN_STARTED, TURN_FINISHED, TURN_FAILED)
}


def to_draft(event: pb.AgentEvent, turn_id: str) -> Draft | None:
    """Return what the edge will number; ``None`` if it journals nothing for this event.

    That is so for a heartbeat, for the start of an attempt, and for what ``is_unsupported``.

    Raises:
        WireFault: no correct runtime sends this.
    """
    payload = event.WhichOneof("payload")
    if payload == "text_delta":
        return _delta(TOKEN, event, event.text_delta, turn_id)
    if payload == "reasoning_delta":
        return _delta(REASONING, event, event.reasoning_delta, turn_id)
    shape = _BY_PAYLOAD.get(payload or "")
    if shape is None or is_unsupported(event):
        return None
    if shape is TURN_FINISHED and event.turn_finished.outcome == pb.TURN_OUTCOME_FAILED:
        shape = TURN_FAILED
    return _draft(shape, event, turn_id)


def is_unsupported(event: pb.AgentEvent) -> bool:
    """Whether this edge skips an event: of a newer contract, or an application's ephemeral one."""
    payload = event.WhichOneof("payload")
    if payload == CUSTOM.payload:
        return event.delivery_class == pb.DELIVERY_CLASS_EPHEMERAL
    return payload not in _BY_PAYLOAD and payload not in _WITHOUT_DRAFT


def to_agent_event(event: Event) -> pb.AgentEvent:
    """Return a journaled event as its runtime sent it, for the history of a request.

    Raises:
        LogBroken: the journal holds what no edge of this version writes.
    """
    try:
        return _rebuild(event)
    except (AttributeError, KeyError, TypeError, ValueError):
        # From None: the cause may quote what a user or a tool said.
        raise LogBroken(f"event {event.epoch}-{event.seq} cannot be read back") from None


def _delta(
    type_: str, event: pb.AgentEvent, delta: pb.TextDelta | pb.ReasoningDelta, turn_id: str
) -> Draft:
    """Build a delta's JSON by hand: this runs once per token."""
    message_id = delta.message_id
    before, after = _frame(turn_id, message_id, event.author, event.parent_tool_call_id)
    data = before + encode_basestring_ascii(delta.text) + after
    if len(data) > MAX_EVENT_BYTES:
        raise _too_large(type_, data)
    return Draft(type_, data, message_id, False, "", event.index)


@lru_cache(maxsize=_FRAMES_KEPT)
def _frame(turn_id: str, message_id: str, author: str, parent_call_id: str) -> tuple[str, str]:
    """Return what stands before and after the text: equal for all deltas of a message."""
    if not message_id:
        raise WireFault("message_id is empty")
    start = compact_json({"turn_id": turn_id, "message_id": message_id})
    origin = _origin(author, parent_call_id)
    end = "," + compact_json(origin)[1:] if origin else "}"
    return start[:-1] + ',"text":', end


def _origin(author: str, parent_call_id: str) -> dict[str, str]:
    """Return where an event arose, as the last keys of its JSON."""
    origin = {"author": author, "parent_call_id": parent_call_id}
    return {key: value for key, value in origin.items() if value}


def _draft(shape: Shape, event: pb.AgentEvent, turn_id: str) -> Draft:
    payload = getattr(event, shape.payload)
    values = {"turn_id": turn_id, **_read(shape.fields, payload)}
    data = compact_json(values | _origin(event.author, event.parent_tool_call_id))
    hidden = _read(shape.private, payload)
    private = compact_json(hidden) if hidden else ""
    if len(data) > MAX_EVENT_BYTES or len(private) > MAX_EVENT_BYTES:
        raise _too_large(shape.type, max(data, private, key=len))
    coalescable = event.delivery_class == pb.DELIVERY_CLASS_COALESCABLE
    return Draft(
        shape.type,
        data,
        subject=values.get("call_id") or values.get("message_id") or "",
        structural=shape.structural and not (shape is CUSTOM and coalescable),
        private=private,
        index=event.index,
        gated=values.get("checkpoint_required", False),
    )


def _read(fields: Fields, payload: Any) -> dict[str, Any]:
    values = ((key, kind.read(payload, name)) for key, name, kind in fields)
    return {key: value for key, value in values if value is not None}


def _too_large(type_: str, json_text: str) -> EventTooLarge:
    return EventTooLarge(f"{type_}: {len(json_text)} bytes, limit {MAX_EVENT_BYTES}")


def _rebuild(event: Event) -> pb.AgentEvent:
    shape = _BY_TYPE[event.type]
    values = json.loads(event.data)
    result = pb.AgentEvent(
        event_id=f"{event.epoch}-{event.seq}",
        delivery_class=(
            pb.DELIVERY_CLASS_STRUCTURAL if event.structural else pb.DELIVERY_CLASS_COALESCABLE
        ),
        author=values.get("author", ""),
        parent_tool_call_id=values.get("parent_call_id", ""),
    )
    payload = getattr(result, shape.payload)
    payload.SetInParent()
    _write(shape.fields, payload, values)
    if shape.private and event.private:
        _write(shape.private, payload, json.loads(event.private))
    if event.type == TURN_START:
        result.attempt = values["attempt"]
    if event.type == ERROR:
        payload.outcome = pb.TURN_OUTCOME_FAILED
    return result


def _write(fields: Fields, payload: Any, values: dict[str, Any]) -> None:
    for key, name, kind in fields:
        if key in values:
            kind.write(payload, name, values[key])
