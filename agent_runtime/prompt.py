"""A session's history as the messages that a chat model reads.

For agents over chat models; knows nothing of any API's client. Calls get ids made from their place,
so that every call in the prompt is followed by its own result, as the APIs demand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_runtime.events import MessageCompleted, Outcome, Part
from agent_runtime.ledger import HistoryItem, ToolRecord, UserMessage
from agent_runtime.limits import to_json

Prompt = list[dict[str, Any]]


def opening_prompt(system: str, history: Iterable[HistoryItem], parts: Iterable[Part]) -> Prompt:
    """Return the prompt at the beginning of a turn."""
    builder = _Builder()
    if system:
        builder.prompt.append({"role": "system", "content": system})
    for item in history:
        builder.add(item)
    builder.add(UserMessage(tuple(parts)))
    return builder.prompt


def part_text(part: Part) -> str:
    """Return a part in words: a chat model of unknown abilities reads text."""
    if part.uri:
        return f"(file {part.display_name or part.uri}, {part.media_type or 'type unknown'})"
    return part.text or part.data_json


class _Builder:
    """Collects messages, and keeps the results of calls right behind the message that made them."""

    def __init__(self) -> None:
        self.prompt: Prompt = []
        self._calls: list[dict[str, Any]] | None = None
        self._caller: str = ""
        self._count = 0

    def add(self, item: HistoryItem) -> None:
        match item:
            case UserMessage(parts=parts):
                self._calls = None
                content = "\n".join(part_text(part) for part in parts)
                self.prompt.append({"role": "user", "content": content})
            case MessageCompleted():
                self._say(item.text, item.message_id)
            case ToolRecord():
                self._add_call(item)

    def _say(self, text: str, message_id: str) -> None:
        self._calls, self._caller = [], message_id
        self.prompt.append({"role": "assistant", "content": text})

    def _add_call(self, record: ToolRecord) -> None:
        if self._calls is None or record.started.message_id != self._caller:
            self._say("", record.started.message_id)
        self._count += 1
        call_id = f"call_{self._count}"
        assert self._calls is not None
        if not self._calls:
            self._message_of_calls()["tool_calls"] = self._calls
        function = {"name": record.started.tool, "arguments": record.started.arguments_json}
        self._calls.append({"id": call_id, "type": "function", "function": function})
        self.prompt.append({"role": "tool", "tool_call_id": call_id, "content": _result(record)})

    def _message_of_calls(self) -> dict[str, Any]:
        return next(message for message in reversed(self.prompt) if message["role"] == "assistant")


def _result(record: ToolRecord) -> str:
    finished = record.finished
    if finished.outcome is Outcome.SUCCEEDED:
        return finished.result_json or "null"
    reason = finished.problem.reason if finished.problem is not None else finished.outcome.upper()
    return to_json({"error": reason})
