"""The events of AG-UI 1.0 that an edge sends, each by the function that makes it, and their frame.

Knows nothing of sessions or of what an event of ours means; ``edge.wire.ag_ui`` says which follows
which. Names and members are those of the protocol's own schema (``@ag-ui/core``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from edge.core.event import compact_json
from edge.wire.loose_json import parse_loosely

CONTENT_TYPE = "text/event-stream; charset=utf-8"

PING = b": ping\n"
"""Without a blank line, as in the native format: AG-UI's parser skips every line but ``data:``."""

PROTOCOL_VERSION = "1.0"

AgUiEvent = dict[str, Any]


class Kind(Enum):
    """What a streamed message holds."""

    TEXT = "TEXT_MESSAGE"
    REASONING = "REASONING_MESSAGE"


def frame(events: Iterable[AgUiEvent]) -> bytes:
    """Return the events as Server-Sent Events. AG-UI's parser splits at LF LF and at nothing else."""
    return "".join(f"data: {compact_json(event)}\n\n" for event in events).encode("ascii")


def run_started(thread_id: str, run_id: str, messages: Sequence[Mapping[str, Any]]) -> AgUiEvent:
    """Open a run. The input is echoed, because a client that was not there has no other way to it."""
    asked = {"threadId": thread_id, "runId": run_id, "messages": list(messages)}
    return {
        "type": "RUN_STARTED",
        "threadId": thread_id,
        "runId": run_id,
        "protocolVersion": PROTOCOL_VERSION,
        "input": {**asked, "state": {}, "tools": [], "context": [], "forwardedProps": {}},
    }


def run_finished(
    thread_id: str, run_id: str, outcome: Mapping[str, Any] | None, usage: AgUiEvent | None
) -> AgUiEvent:
    """Close a run that did not fail."""
    event: AgUiEvent = {"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id}
    return event | _present(outcome=outcome, usage=[usage] if usage else None)


def run_error(message: str, code: str, usage: AgUiEvent | None) -> AgUiEvent:
    """Close a run that failed."""
    event: AgUiEvent = {"type": "RUN_ERROR", "message": message, "code": code}
    return event | _present(usage=[usage] if usage else None)


def message_start(
    kind: Kind, message_id: str, role: str = "assistant", name: str | None = None
) -> list[AgUiEvent]:
    """Open a message. A reasoning message stands in a span of its own, of the same id."""
    if kind is Kind.REASONING:
        opened = {"type": "REASONING_MESSAGE_START", "messageId": message_id, "role": "reasoning"}
        return [{"type": "REASONING_START", "messageId": message_id}, opened]
    start = {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": role}
    return [start | _present(name=name)]


def message_content(kind: Kind, message_id: str, delta: str) -> AgUiEvent:
    """Append to a message that is open."""
    return {"type": f"{kind.value}_CONTENT", "messageId": message_id, "delta": delta}


def message_end(kind: Kind, message_id: str) -> list[AgUiEvent]:
    """Close a message."""
    end = [{"type": f"{kind.value}_END", "messageId": message_id}]
    if kind is Kind.REASONING:
        end.append({"type": "REASONING_END", "messageId": message_id})
    return end


def tool_call(
    call_id: str, name: str, arguments_json: str, message_id: str | None
) -> list[AgUiEvent]:
    """Show a call, whole: whatever happens afterwards, no call is ever left open."""
    start = {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name}
    return [
        start | _present(parentMessageId=message_id),
        {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": arguments_json},
        {"type": "TOOL_CALL_END", "toolCallId": call_id},
    ]


def tool_result(call_id: str, content: str, told: Mapping[str, Any]) -> AgUiEvent:
    """Show how a call ended. AG-UI has no sign of failure here, so ``told`` rides as metadata."""
    return {
        "type": "TOOL_CALL_RESULT",
        "messageId": f"res-{call_id}",
        "toolCallId": call_id,
        "content": content,
        "role": "tool",
        "metadata": {"unbroken": dict(told)},
    }


def messages_snapshot(messages: Iterable[Mapping[str, Any]]) -> AgUiEvent:
    """Replace the client's messages: the only way that AG-UI has to take one back."""
    return {"type": "MESSAGES_SNAPSHOT", "messages": [dict(m) for m in messages]}


def state_snapshot() -> AgUiEvent:
    """Clear the client's state: the deltas that follow build all of it."""
    return {"type": "STATE_SNAPSHOT", "snapshot": {}}


def state_delta(changes: Iterable[Mapping[str, Any]]) -> AgUiEvent:
    """Change top-level keys of the state."""
    return {"type": "STATE_DELTA", "delta": [op for change in changes for op in _patch(change)]}


def _patch(change: Mapping[str, Any]) -> list[AgUiEvent]:
    path = "/" + change["key"].replace("~", "~0").replace("/", "~1")
    if change.get("removed"):
        # Removing what is not there is an error, and a client may not have had the key: put it first.
        return [{"op": "add", "path": path, "value": None}, {"op": "remove", "path": path}]
    return [{"op": "add", "path": path, "value": parse_loosely(change["value_json"])}]


def custom(name: str, value: Any) -> AgUiEvent:
    """Tell what AG-UI has no event for."""
    return {"type": "CUSTOM", "name": name, "value": value}


def _present(**members: Any) -> AgUiEvent:
    """Leave out what is not there: AG-UI refuses a member that is null."""
    return {name: value for name, value in members.items() if value is not None}
