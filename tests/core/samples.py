"""Drafts as a runtime or the edge would make them, with everything that a test does not care about filled in.

Knows nothing of seqs: a log or a writer gives those.
"""

from __future__ import annotations

from typing import Any

from edge.core import drafts
from edge.core.event import (
    CUSTOM,
    DONE,
    MESSAGE,
    NOTICE,
    REASONING,
    STATE,
    SUSPENDED,
    TOKEN,
    TOOL_END,
    TOOL_PROGRESS,
    TOOL_START,
    Draft,
    compact_json,
)

TURN = "t1"
AGENT = "helper"
EXECUTE = '{"execute":true}'
DENIED = '{"outcome":"not_executed","reason":"DENIED"}'


def _draft(kind: str, body: dict[str, Any], subject: str = "", *, structural: bool = True) -> Draft:
    return Draft(kind, compact_json({"turn_id": TURN, **body}), subject, structural)


def start(attempt: int = 1, turn_id: str = TURN) -> Draft:
    """The start of an attempt; the first one carries the input and the policy."""
    if attempt > 1:
        return drafts.turn_start(turn_id, AGENT, attempt=attempt)
    policy = {"on_disconnect": "cancel", "pacing": "viewer"}
    parts = [{"type": "text", "text": "hello"}]
    return drafts.turn_start(turn_id, AGENT, attempt=1, user_input=parts, policy=policy)


def token(text: str = "word ", message_id: str = "m1") -> Draft:
    return _draft(TOKEN, {"message_id": message_id, "text": text}, message_id, structural=False)


def reasoning(text: str = "hm ", message_id: str = "m1") -> Draft:
    return _draft(REASONING, {"message_id": message_id, "text": text}, message_id, structural=False)


def message(text: str = "word ", message_id: str = "m1", status: str = "complete") -> Draft:
    body = {"message_id": message_id, "role": "agent", "parts": [{"type": "text", "text": text}]}
    return _draft(MESSAGE, body | {"status": status}, message_id)


def tool_start(call_id: str = "c1", *, gated: bool = True, executor: str = "runtime") -> Draft:
    """A started call; a client's own tools have no gate."""
    gated = gated and executor == "runtime"
    body = {"call_id": call_id, "name": "tool", "arguments_json": "{}"}
    body |= {"replay_safety": "unsafe", "executor": executor}
    data = compact_json({"turn_id": TURN, **body, "checkpoint_required": gated})
    return Draft(TOOL_START, data, call_id, gated=gated)


def progress(call_id: str = "c1", text: str = "half") -> Draft:
    body = {"call_id": call_id, "message": text}
    return _draft(TOOL_PROGRESS, body, call_id, structural=False)


def tool_end(call_id: str = "c1", outcome: str = "succeeded") -> Draft:
    return _draft(TOOL_END, {"call_id": call_id, "outcome": outcome}, call_id)


def suspended(reason: str = "checkpoint", *pending: str) -> Draft:
    return _draft(SUSPENDED, {"reason": reason, "pending_call_ids": list(pending)}, TURN)


def state(key: str, value: str | None) -> Draft:
    change = {"key": key, "removed": True} if value is None else {"key": key, "value_json": value}
    return _draft(STATE, {"changes": [change]})


def notice(text: str = "slow") -> Draft:
    return _draft(NOTICE, {"error": {"reason": text}})


def custom(name: str = "n", *, structural: bool = True) -> Draft:
    return _draft(CUSTOM, {"name": name, "value_json": "1"}, structural=structural)


def done(outcome: str = "completed") -> Draft:
    return _draft(DONE, {"outcome": outcome}, TURN)


def failed(reason: str = "runtime_error") -> Draft:
    return drafts.failed(TURN, reason, retryable=False)
