"""The shapes of request bodies: from parsed JSON to the requests that a session understands.

Knows nothing of HTTP. Every mistake of a body is told at once, each with its JSON Pointer; unknown
fields are refused, so that a misspelt option is an error and not a silent default.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, get_args

from edge.core.event import compact_json
from edge.core.requests import OnDisconnect, Pacing, TurnRequest
from edge.web.problems import FieldError, Refused
from edge.web.strict_json import parse_json

T = TypeVar("T", bound=str)

MAX_INPUT_CHARS = 32_000
MAX_PARTS = 32
MAX_NAME_CHARS = 255
MAX_URI_CHARS = 2_048
MAX_REASON_CHARS = 2_000

_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+", re.ASCII)


class _Fields:
    """Reads the fields of one object, and notes what is wrong with them in a shared list."""

    def __init__(
        self, value: object, pointer: str, errors: list[FieldError], known: Sequence[str]
    ) -> None:
        self._pointer = pointer
        self._errors = errors
        self._members: Mapping[str, object] = value if isinstance(value, dict) else {}
        if not isinstance(value, dict):
            self._errors.append(FieldError(pointer, "must be an object"))
        elif not self._members.keys() <= set(known):
            self._errors.append(
                FieldError(pointer, f"may only have: {', '.join(known) or 'nothing'}")
            )

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def refuse(self, name: str, detail: str) -> None:
        self._errors.append(FieldError(f"{self._pointer}/{name}", detail))

    def value(self, name: str) -> object:
        return self._members.get(name)

    def text(self, name: str, max_chars: int, pattern: re.Pattern[str] | None = None) -> str:
        """Return a string that is not blank; an empty one when it is refused."""
        value = self._members.get(name)
        if not isinstance(value, str) or not value.strip():
            self.refuse(name, "must be a string that is not blank")
        elif len(value) > max_chars:
            self.refuse(name, f"must have at most {max_chars} characters")
        elif "\0" in value:
            self.refuse(name, "must not contain U+0000")
        elif pattern is not None and pattern.fullmatch(value) is None:
            self.refuse(name, "does not have the right form")
        else:
            return value
        return ""

    def choice(self, name: str, options: Sequence[T]) -> T:
        """Return one of the options, the first when the field is absent."""
        value = self._members.get(name, options[0])
        if value not in options:
            self.refuse(name, f"must be one of: {', '.join(options)}")
            return options[0]
        return next(option for option in options if option == value)


def read_nothing(body: object) -> None:
    """Accept ``{}``.

    Raises:
        Refused: ``invalid-body``; so do all functions here.
    """
    errors: list[FieldError] = []
    _Fields(body, "", errors, known=())
    _raise(errors)


def read_turn(body: object, idempotency_key: str) -> TurnRequest:
    """Read the body that starts a turn."""
    errors: list[FieldError] = []
    fields = _Fields(body, "", errors, known=("input", "agent", "on_disconnect", "pacing"))
    parts = _input(fields, errors)
    agent = fields.text("agent", 64, _AGENT) if "agent" in fields else ""
    on_disconnect = fields.choice("on_disconnect", get_args(OnDisconnect))
    pacing = fields.choice("pacing", get_args(Pacing))
    _raise(errors)
    return TurnRequest(
        idempotency_key=idempotency_key,
        body_hash=_canonical_hash(body),
        input=parts,
        agent=agent,
        on_disconnect=on_disconnect,
        pacing=pacing,
    )


def read_decision(body: object) -> str:
    """Read what a person or a browser decided, and return it as ``edge.core.log.Resolve`` keeps it."""
    errors: list[FieldError] = []
    fields = _Fields(body, "", errors, known=("approve", "reason", "result", "error"))
    decision = _decision(fields, errors)
    _raise(errors)
    return compact_json(decision)


def _decision(fields: _Fields, errors: list[FieldError]) -> dict[str, object]:
    named = [name for name in ("approve", "result", "error") if name in fields]
    if len(named) != 1:
        errors.append(FieldError("", "must have exactly one of: approve, result, error"))
        return {}
    if "reason" in fields and fields.value("approve") is not False:
        fields.refuse("reason", "goes only with approve = false")
    if named == ["result"]:
        return {"outcome": "succeeded", "result_json": compact_json(fields.value("result"))}
    if named == ["error"]:
        text = fields.text("error", MAX_REASON_CHARS)
        return {"outcome": "failed", "reason": "CLIENT_ERROR", "user_message": text}
    if fields.value("approve") is True:
        return {"execute": True}
    if fields.value("approve") is not False:
        fields.refuse("approve", "must be true or false")
    denied: dict[str, object] = {"outcome": "not_executed", "reason": "DENIED"}
    if "reason" in fields:
        denied["user_message"] = fields.text("reason", MAX_REASON_CHARS)
    return denied


def _input(fields: _Fields, errors: list[FieldError]) -> tuple[Mapping[str, object], ...]:
    value = fields.value("input")
    if isinstance(value, str):
        return ({"type": "text", "text": fields.text("input", MAX_INPUT_CHARS)},)
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_PARTS:
        fields.refuse("input", f"must be a string, or a list of 1 to {MAX_PARTS} parts")
        return ()
    parts = tuple(_part(part, f"/input/{n}", errors) for n, part in enumerate(value))
    if sum(len(str(part.get("text", ""))) for part in parts) > MAX_INPUT_CHARS:
        fields.refuse("input", f"must have at most {MAX_INPUT_CHARS} characters of text in all")
    return parts


def _part(value: object, pointer: str, errors: list[FieldError]) -> Mapping[str, object]:
    kind = value.get("type") if isinstance(value, dict) else None
    reader = _PARTS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        errors.append(FieldError(f"{pointer}/type", f"must be one of: {', '.join(_PARTS)}"))
        return {}
    return reader(value, pointer, errors)


def _text_part(value: object, pointer: str, errors: list[FieldError]) -> Mapping[str, object]:
    fields = _Fields(value, pointer, errors, known=("type", "text"))
    return {"type": "text", "text": fields.text("text", MAX_INPUT_CHARS)}


def _file_part(value: object, pointer: str, errors: list[FieldError]) -> Mapping[str, object]:
    fields = _Fields(value, pointer, errors, known=("type", "uri", "media_type", "name"))
    part = {
        "type": "file",
        "uri": fields.text("uri", MAX_URI_CHARS, _URI),
        "media_type": fields.text("media_type", MAX_NAME_CHARS, _MEDIA_TYPE),
    }
    if "name" in fields:
        part["name"] = fields.text("name", MAX_NAME_CHARS)
    return part


def _data_part(value: object, pointer: str, errors: list[FieldError]) -> Mapping[str, object]:
    fields = _Fields(value, pointer, errors, known=("type", "data_json"))
    text = fields.text("data_json", MAX_INPUT_CHARS)
    if text:
        try:
            parse_json(text.encode("utf-8"))
        except Refused:
            fields.refuse("data_json", "must hold strict JSON as text")
    return {"type": "data", "data_json": text}


_PARTS: Mapping[str, Callable[[object, str, list[FieldError]], Mapping[str, object]]] = {
    "text": _text_part,
    "file": _file_part,
    "data": _data_part,
}


def _canonical_hash(body: object) -> str:
    """What tells a repeat from a reused key: key order, spacing and escapes do not count."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _raise(errors: Sequence[FieldError]) -> None:
    if errors:
        raise Refused("invalid-body", errors=errors)
