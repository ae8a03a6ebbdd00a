"""How one protobuf field travels in an event's JSON: a reader and a writer for each kind of field.

Knows nothing of events: ``edge.upstream.wire`` says which kind each field is. Both directions of a
kind stand together, so that what is written is what is read back.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core.errors import EdgeError

MAX_TOOL_ARGUMENTS_BYTES = 64 * 1024
"""UTF-8 size of a tool call's arguments. Such a tool is not started."""


class WireFault(EdgeError):
    """A runtime sent what no correct runtime sends. The text names sizes and fields, no content."""

    code = "wire-fault"
    reason: ClassVar[str] = "runtime_protocol_error"
    """What the attempt's stream ends with, from the table in PROTOCOL.md."""


class EventTooLarge(WireFault):
    """An event, or a part of it, is larger than the contract allows."""

    code = "event-too-large"
    reason = "event_too_large"


Names = Mapping[int, str]
"""What the numbers of an enum are called in JSON."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of field."""

    read: Callable[[Any, str], Any]
    """From a message and a field's name to its JSON value; ``None`` leaves the key out."""
    write: Callable[[Any, str, Any], None]
    """Sets the field of a message from its JSON value."""


def _read_id(message: Any, name: str) -> str:
    value: str = getattr(message, name)
    if not value:
        raise WireFault(f"{name} is empty")
    return value


def _read_optional(message: Any, name: str) -> Any:
    return getattr(message, name) or None


def _read_arguments(message: Any, name: str) -> str:
    value: str = getattr(message, name)
    size_bytes = len(value.encode())
    if size_bytes > MAX_TOOL_ARGUMENTS_BYTES:
        raise EventTooLarge(f"{name}: {size_bytes} bytes, limit {MAX_TOOL_ARGUMENTS_BYTES}")
    return value


def _read_base64(message: Any, name: str) -> str | None:
    value: bytes = getattr(message, name)
    return base64.b64encode(value).decode("ascii") if value else None


def _write_base64(message: Any, name: str, value: str) -> None:
    setattr(message, name, base64.b64decode(value, validate=True))


def _read_fraction(message: Any, name: str) -> float | None:
    # NaN and infinity have no JSON, and a bar cannot show what lies outside its ends.
    value: float = getattr(message, name)
    return value if message.HasField(name) and 0 <= value <= 1 else None


def _read_milliseconds(message: Any, name: str) -> int | None:
    if not message.HasField(name):
        return None
    duration = getattr(message, name)
    return int(duration.seconds * 1000 + duration.nanos // 1_000_000)


def _write_milliseconds(message: Any, name: str, value: int) -> None:
    duration = getattr(message, name)
    duration.SetInParent()
    duration.seconds, duration.nanos = value // 1000, value % 1000 * 1_000_000


def _read_list(message: Any, name: str) -> list[Any]:
    return list(getattr(message, name))


def _write_list(message: Any, name: str, value: Iterable[Any]) -> None:
    getattr(message, name).extend(value)


VALUE = Kind(getattr, setattr)
"""Text or a truth value that is always there."""
ID = Kind(_read_id, setattr)
"""Text without which nothing can be told apart."""
OPTIONAL = Kind(_read_optional, setattr)
ARGUMENTS = Kind(_read_arguments, setattr)
BASE64 = Kind(_read_base64, _write_base64)
FRACTION = Kind(_read_fraction, setattr)
MILLISECONDS = Kind(_read_milliseconds, _write_milliseconds)
IDS = Kind(_read_list, _write_list)


def enumerated(names: Names, *, unset: str | None = None) -> Kind:
    """Return the kind of an enum field whose values have ``names``.

    ``unset`` is how the contract treats the value 0, if it says so; otherwise 0 is refused, like
    any value that this edge does not know.
    """
    numbers = {name: number for number, name in names.items()}
    readable = names if unset is None else {0: unset, **names}

    def read(message: Any, name: str) -> str:
        number: int = getattr(message, name)
        if number not in readable:
            raise WireFault(f"{name} has the unknown value {number}")
        return readable[number]

    return Kind(read, lambda message, name, value: setattr(message, name, numbers[value]))


def optional(kind: Kind) -> Kind:
    """Return ``kind`` for a field that is left out while it has its default value."""

    def read(message: Any, name: str) -> Any:
        return kind.read(message, name) if getattr(message, name) else None

    return Kind(read, kind.write)


def required(kind: Kind) -> Kind:
    """Return ``kind`` for a field that must be set."""

    def read(message: Any, name: str) -> Any:
        value = kind.read(message, name)
        if value is None:
            raise WireFault(f"{name} is not set")
        return value

    return Kind(read, kind.write)


def inside(inner: str, kind: Kind) -> Kind:
    """Return the kind of a submessage of which one field matters: ``inner``, of ``kind``."""
    return Kind(
        lambda message, name: kind.read(getattr(message, name), inner),
        lambda message, name, value: kind.write(getattr(message, name), inner, value),
    )


def _read_part(part: pb.ContentPart) -> dict[str, str]:
    match part.WhichOneof("content"):
        case "text":
            return {"type": "text", "text": part.text}
        case "data_json":
            return {"type": "data", "data_json": part.data_json}
        case "file":
            file = part.file
            named = {"name": file.display_name} if file.display_name else {}
            return {"type": "file", "uri": file.uri, "media_type": file.media_type, **named}
    raise WireFault("a content part has an unknown content")


def write_part(part: Mapping[str, Any]) -> pb.ContentPart:
    """Return the message for a parsed content part.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    match part["type"]:
        case "text":
            return pb.ContentPart(text=part["text"])
        case "data":
            return pb.ContentPart(data_json=part["data_json"])
        case "file":
            name = part.get("name", "")
            file = pb.FileRef(uri=part["uri"], media_type=part["media_type"], display_name=name)
            return pb.ContentPart(file=file)
    raise ValueError("unknown type of content part")


def _read_parts(message: Any, name: str) -> list[dict[str, str]]:
    return [_read_part(part) for part in getattr(message, name)]


def _write_parts(message: Any, name: str, value: Iterable[Mapping[str, Any]]) -> None:
    getattr(message, name).extend(write_part(part) for part in value)


def _read_change(change: pb.StateChange) -> dict[str, Any]:
    if change.WhichOneof("change") == "value_json":
        return {"key": change.key, "value_json": change.value_json}
    if change.removed:
        return {"key": change.key, "removed": True}
    raise WireFault("a state change changes nothing")


def _read_changes(message: Any, name: str) -> list[dict[str, Any]]:
    return [_read_change(change) for change in getattr(message, name)]


def _write_changes(message: Any, name: str, value: Iterable[Mapping[str, Any]]) -> None:
    getattr(message, name).extend(pb.StateChange(**change) for change in value)


MAX_EXACT_NUMBER = 2**53 - 1
"""Up to here JavaScript reads a whole number exactly. A larger count is told as this one."""
_USAGE_FIELDS = tuple(field.name for field in pb.Usage.DESCRIPTOR.fields)


def _read_usage(message: Any, name: str) -> dict[str, int] | None:
    usage = getattr(message, name)
    counts = {n: min(getattr(usage, n), MAX_EXACT_NUMBER) for n in _USAGE_FIELDS}
    return {n: count for n, count in counts.items() if count} or None


def _write_usage(message: Any, name: str, value: Mapping[str, int]) -> None:
    getattr(message, name).MergeFrom(pb.Usage(**value))


def _read_error(message: Any, name: str) -> dict[str, Any] | None:
    if not message.HasField(name):
        return None
    error = getattr(message, name)
    told = {"user_message": error.user_message} if error.user_message else {}
    return {"reason": error.reason, **told, "retryable": error.retryable}


def _write_error(message: Any, name: str, value: Mapping[str, Any]) -> None:
    error = getattr(message, name)
    error.SetInParent()
    error.MergeFrom(pb.ErrorInfo(**value))


PARTS = Kind(_read_parts, _write_parts)
CHANGES = Kind(_read_changes, _write_changes)
USAGE = Kind(_read_usage, _write_usage)
ERROR = Kind(_read_error, _write_error)
"""What a browser may know of an ``ErrorInfo``; its developer message is private."""
