"""A small event-stream parser that follows the WHATWG algorithm, for judging what we send.

Knows nothing of HTTP. Fed bytes in any pieces; keeps what a browser would keep: the last event id
persists over blocks, a block without data dispatches nothing, an unfinished block is discarded.
"""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass, field
from typing import Any

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Message:
    """One dispatched event, as a browser would hand it to a listener."""

    type: str
    data: str
    last_event_id: str

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@dataclass(slots=True)
class EventStreamParser:
    """Incremental parser. ``feed`` returns the messages that the bytes completed."""

    last_event_id: str = ""
    retry_ms: int | None = None
    comments: list[str] = field(default_factory=list)
    _decoder: Any = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))
    _line: str = ""
    _after_cr: bool = False
    _started: bool = False
    _type: str = ""
    _data: list[str] = field(default_factory=list)
    _id: str = ""

    def feed(self, data: bytes) -> list[Message]:
        text = self._decoder.decode(data)
        if text and not self._started:
            self._started = True
            text = text.removeprefix(_BOM)
        messages: list[Message] = []
        for character in text:
            self._take(character, messages)
        return messages

    def _take(self, character: str, messages: list[Message]) -> None:
        if character == "\n" and self._after_cr:
            self._after_cr = False
            return
        self._after_cr = character == "\r"
        if character not in "\r\n":
            self._line += character
            return
        line, self._line = self._line, ""
        if line:
            self._field(line)
        else:
            self._dispatch(messages)

    def _field(self, line: str) -> None:
        if line.startswith(":"):
            self.comments.append(line[1:])
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._type = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)

    def _dispatch(self, messages: list[Message]) -> None:
        self.last_event_id = self._id
        if self._data:
            text = "\n".join(self._data)
            messages.append(Message(self._type or "message", text, self.last_event_id))
        self._type, self._data = "", []


def parse(data: bytes) -> list[Message]:
    """Return every message of a whole stream."""
    return EventStreamParser().feed(data)
