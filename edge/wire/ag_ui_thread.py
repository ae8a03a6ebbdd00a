"""The messages of a thread as an AG-UI client holds them: what its reducer makes of what we sent.

Knows nothing of our events. AG-UI can take a message back only by stating all the others, so
whoever may have to do that follows along.

Invariant: ``messages`` is what ``@ag-ui/client`` shows after the events that were applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from edge.wire.ag_ui_events import AgUiEvent, Kind

Message = dict[str, Any]


class Thread:
    """Folds AG-UI events. ``apply`` takes them in the order in which they are sent."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._pieces: dict[str, list[str]] = {}  # text of messages, joined when it is asked for

    def messages(self) -> list[Message]:
        """Return a copy of every message, oldest first, ready for a ``MESSAGES_SNAPSHOT``."""
        return deepcopy(list(self._whole()))

    def apply(self, event: AgUiEvent) -> None:
        """Take in the next event, if it changes a message."""
        match event["type"]:
            case "RUN_STARTED":
                self._ask(event["input"]["messages"])
            case "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START":
                self._open(event)
            case "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT":
                self._pieces[event["messageId"]].append(event["delta"])
            case "TOOL_CALL_START":
                self._call(event)
            case "TOOL_CALL_ARGS":
                self._find_call(event["toolCallId"])["function"]["arguments"] = event["delta"]
            case "TOOL_CALL_RESULT":
                self._result(event)

    def replace(self, message_id: str, text: str) -> None:
        """Let a message say something else."""
        self._pieces[message_id] = [text]

    def withdraw(self, kind: Kind, message_id: str) -> None:
        """Take a message back that was begun. Its tool calls stay: they are structural."""
        message = self._find(message_id)
        assert message is not None
        self._pieces.pop(message_id, None)
        if kind is Kind.REASONING and not self._other_reasoning(message):
            # A snapshot without any reasoning would leave this one where it is.
            self._pieces[message_id] = []
        elif "toolCalls" not in message:
            self._messages.remove(message)

    def _other_reasoning(self, message: Message) -> bool:
        return any(m["role"] == "reasoning" and m is not message for m in self._messages)

    def _whole(self) -> Iterator[Message]:
        for message in self._messages:
            pieces = self._pieces.get(message["id"])
            yield message if pieces is None else {**message, "content": "".join(pieces)}

    def _ask(self, messages: list[Mapping[str, Any]]) -> None:
        known = {message["id"] for message in self._messages}
        self._messages.extend(dict(m) for m in messages if m["id"] not in known)

    def _open(self, event: AgUiEvent) -> None:
        message_id = event["messageId"]
        if self._find(message_id) is None:
            named = {"name": event["name"]} if "name" in event else {}
            self._messages.append({"id": message_id, "role": event["role"], **named})
        self._pieces.setdefault(message_id, [])

    def _call(self, event: AgUiEvent) -> None:
        call = {
            "id": event["toolCallId"],
            "type": "function",
            "function": {"name": event["toolCallName"], "arguments": ""},
        }
        parent = self._parent(event.get("parentMessageId"), event["toolCallId"])
        parent.setdefault("toolCalls", []).append(call)

    def _parent(self, parent_id: str | None, call_id: str) -> Message:
        """Return the message that a call belongs to; a new one if there is none that can have calls."""
        found = self._find(parent_id) if parent_id else None
        if found is not None and found["role"] == "assistant":
            return found
        parent_id = call_id if found is not None else parent_id or call_id
        created: Message = {"id": parent_id, "role": "assistant", "toolCalls": []}
        self._messages.append(created)
        return created

    def _result(self, event: AgUiEvent) -> None:
        message = {
            "id": event["messageId"],
            "role": "tool",
            "toolCallId": event["toolCallId"],
            "content": event["content"],
            "metadata": event["metadata"],
        }
        at = self._owner_index(event["toolCallId"]) + 1
        while 0 < at < len(self._messages) and self._messages[at]["role"] == "tool":
            at += 1
        self._messages.insert(at or len(self._messages), message)

    def _owner_index(self, call_id: str) -> int:
        for index, message in enumerate(self._messages):
            if any(call["id"] == call_id for call in message.get("toolCalls", ())):
                return index
        return -1

    def _find(self, message_id: str) -> Message | None:
        return next((m for m in self._messages if m["id"] == message_id), None)

    def _find_call(self, call_id: str) -> dict[str, Any]:
        calls = self._messages[self._owner_index(call_id)]["toolCalls"]
        found: dict[str, Any] = next(call for call in calls if call["id"] == call_id)
        return found
