"""The chunks of the AI SDK's UI message stream that an edge sends, each by the function that makes it.

Knows nothing of turns; ``edge.wire.ai_sdk`` says which chunk follows which. Names and members are those of
the schema in ``ai`` (``ui-message-chunks``), in what its majors 6 and 7 have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from edge.core.event import compact_json
from edge.wire.loose_json import parse_loosely

Chunk = dict[str, Any]

TEXT, REASONING = "text", "reasoning"

DONE_FRAME = b"data: [DONE]\n\n"
"""The client skips it; proxies and tools of the format look for it."""

_OUTCOMES = {
    "unknown": "It is not known whether this tool acted.",
    "not_executed": "This tool was not run.",
    "failed": "This tool failed.",
}


def frame(chunk: Chunk) -> bytes:
    """Return the chunk as one Server-Sent Event."""
    return f"data: {compact_json(chunk)}\n\n".encode("ascii")


def start(message_id: str) -> Chunk:
    """Open the assistant message; on a resume the client clears what it has of it."""
    return {"type": "start", "messageId": message_id}


def finish(reason: str) -> Chunk:
    """Close the assistant message."""
    return {"type": "finish", "finishReason": reason}


def text_start(kind: str, message_id: str) -> Chunk:
    return {"type": f"{kind}-start", "id": message_id}


def text_delta(kind: str, message_id: str, text: str) -> Chunk:
    return {"type": f"{kind}-delta", "id": message_id, "delta": text}


def text_end(kind: str, message_id: str) -> Chunk:
    return {"type": f"{kind}-end", "id": message_id}


def data(name: str, value: Any, *, id_: str = "", transient: bool = False) -> Chunk:
    """Return a data part. Equal names and ids replace each other; a transient one is told, not kept."""
    chunk: Chunk = {"type": f"data-{name}", "data": value}
    if id_:
        chunk["id"] = id_
    return chunk | {"transient": True} if transient else chunk


def text_of(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return what a message says in words."""
    return "".join(part["text"] for part in parts if part["type"] == "text")


def other_part(part: Mapping[str, Any]) -> Iterator[Chunk]:
    """Yield the chunk of a message's part that is not text."""
    match part["type"]:
        case "file":
            named = {"filename": part["name"]} if "name" in part else {}
            yield {"type": "file", "url": part["uri"], "mediaType": part["media_type"], **named}
        case "data":
            yield data("part", parse_loosely(part["data_json"]))


def tool_call(body: Mapping[str, Any], *, ours: bool, settled: bool) -> Chunk:
    """Return a call that is under way.

    ``ours``: a tool that the page need not know. A call marked as executed elsewhere is not offered to the
    page, neither to run it nor to send the conversation again.
    """
    chunk = {
        "type": "tool-input-available",
        "toolCallId": body["call_id"],
        "toolName": body["name"],
        "input": parse_loosely(body["arguments_json"]),
    }
    if ours:
        chunk["dynamic"] = True
    if ours or settled:
        chunk["providerExecuted"] = True
    return chunk


def tool_progress(body: Mapping[str, Any]) -> Iterator[Chunk]:
    """Yield what a running call tells: a preliminary result is a result, the rest is for whoever listens."""
    told = {
        name: body[name] for name in ("message", "fraction") if body.get(name) not in ("", None)
    }
    if told:
        yield data("progress", told, id_=body["call_id"], transient=True)
    if "preliminary_result_json" in body:
        result = parse_loosely(body["preliminary_result_json"])
        yield {**_output(body["call_id"], result), "preliminary": True}


def tool_outcome(body: Mapping[str, Any]) -> Chunk:
    """Return how a call ended. The format knows success, failure and refusal; the rest is said in words."""
    call_id, outcome, error = body["call_id"], body["outcome"], body.get("error", {})
    if outcome == "succeeded":
        return _output(call_id, parse_loosely(body.get("result_json", "null")))
    if outcome == "not_executed" and error.get("reason") == "DENIED":
        return {"type": "tool-output-denied", "toolCallId": call_id}
    return {
        "type": "tool-output-error",
        "toolCallId": call_id,
        "errorText": error.get("user_message") or _OUTCOMES[outcome],
        "toolMetadata": {"outcome": outcome, "reason": error.get("reason", "")},
    }


def _output(call_id: str, value: Any) -> Chunk:
    return {"type": "tool-output-available", "toolCallId": call_id, "output": value}


def approval_request(call_id: str, body: Mapping[str, Any]) -> Chunk:
    """Ask a person about a call; the answer comes back under the same id."""
    chunk = {"type": "tool-approval-request", "approvalId": call_id, "toolCallId": call_id}
    return chunk | ({"reason": body["prompt"]} if "prompt" in body else {})


def state(changes: Iterable[Mapping[str, Any]]) -> Iterator[Chunk]:
    """Yield one part for each key, which replaces the key's former one."""
    for change in changes:
        key = change["key"]
        removed = bool(change.get("removed"))
        rest = {"removed": True} if removed else {"value": parse_loosely(change["value_json"])}
        yield data("state", {"key": key, **rest}, id_=key)


def without_turn(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's members but its turn, which the stream is about anyway."""
    return {name: value for name, value in body.items() if name != "turn_id"}
