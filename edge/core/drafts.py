"""The events that the edge writes itself: the start of an attempt, and the ends nobody else can tell.

Knows nothing of protobuf; the shapes are those of PROTOCOL.md, the same that ``edge.upstream`` gives to a
runtime's events, so a reader cannot tell who wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from edge.core.event import (
    DONE,
    ERROR,
    MESSAGE,
    REASONING,
    SUSPENDED,
    TOKEN,
    TOOL_END,
    TURN_START,
    Draft,
    compact_json,
)

RESTATED_LIMIT_BYTES = 192 * 1024
"""How much text a message that was cut short restates: an event must fit in a record."""


def turn_start(
    turn_id: str,
    agent: str,
    *,
    attempt: int,
    user_input: Sequence[Mapping[str, object]] = (),
    message_id: str = "",
    policy: Mapping[str, str] | None = None,
) -> Draft:
    """Open an attempt. The user's input, its id and the turn's policy ride in attempt 1."""
    body: dict[str, Any] = {"turn_id": turn_id, "attempt": attempt, "agent": agent}
    if user_input:
        body["input"] = list(user_input)
    if message_id:
        body["message_id"] = message_id
    private = compact_json(dict(policy)) if policy else ""
    return Draft(TURN_START, compact_json(body), subject=turn_id, private=private)


def message_cut_short(turn_id: str, message_id: str, deltas: Iterable[tuple[str, str]]) -> Draft:
    """Settle a message that will get no more text, from its ``(type, data)`` deltas.

    What was shown stays, marked incomplete: a stop never takes text back.
    """
    text = {TOKEN: "", REASONING: ""}
    size = 0
    for kind, data in deltas:
        size += len(data)
        if size > RESTATED_LIMIT_BYTES:
            break
        text[kind] += json.loads(data)["text"]
    body: dict[str, Any] = {"turn_id": turn_id, "message_id": message_id, "role": "agent"}
    body["parts"] = [{"type": "text", "text": text[TOKEN]}] if text[TOKEN] else []
    if text[REASONING]:
        body["reasoning"] = text[REASONING]
    body["status"] = "incomplete"
    if size > RESTATED_LIMIT_BYTES:
        body["truncated"] = True
    return Draft(MESSAGE, compact_json(body), subject=message_id)


def tool_end(turn_id: str, call_id: str, outcome: str, reason: str) -> Draft:
    """Settle a tool call that its runtime will not settle: ``unknown`` or ``not_executed``."""
    error = {"reason": reason, "retryable": False}
    body = {"turn_id": turn_id, "call_id": call_id, "outcome": outcome, "error": error}
    return Draft(TOOL_END, compact_json(body), subject=call_id)


def suspended(turn_id: str, call_ids: Sequence[str]) -> Draft:
    """Suspend an attempt at its gates, on behalf of a runtime that will not be heard again."""
    body = {"turn_id": turn_id, "reason": "checkpoint", "pending_call_ids": list(call_ids)}
    return Draft(SUSPENDED, compact_json(body))


def cancelled(turn_id: str) -> Draft:
    """End a turn that somebody stopped."""
    return Draft(DONE, compact_json({"turn_id": turn_id, "outcome": "cancelled"}), subject=turn_id)


def failed(turn_id: str, reason: str, *, retryable: bool) -> Draft:
    """End a turn that cannot go on; ``reason`` is one of the table in PROTOCOL.md."""
    body = {"turn_id": turn_id, "code": reason, "retryable": retryable}
    return Draft(ERROR, compact_json(body), subject=turn_id)
