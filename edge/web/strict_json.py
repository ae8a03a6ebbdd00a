"""JSON as strict as RFC 8259 and I-JSON together: what every reader reads the same way.

Knows nothing of HTTP. The standard library's parser accepts NaN, 1e999, duplicate keys and lone
surrogates, and fails with a ``RecursionError`` on deep nesting: here all of them are refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NoReturn

from edge.core.event import compact_json
from edge.web.problems import Refused

MAX_DEPTH = 32
"""Arrays and objects inside of one another, the outermost included."""
MAX_INTEGER = 2**53
_MAX_INTEGER_CHARS = len(str(-MAX_INTEGER))


def parse_json(body: bytes) -> object:
    """Return the one value that ``body`` holds.

    Raises:
        Refused: ``invalid-json``, for everything that another parser might read differently.
    """
    try:
        value = _decoder.decode(body.decode("utf-8"))
        _check(value, depth=0)
    except (ValueError, RecursionError):  # UnicodeError and JSONDecodeError are ValueErrors
        raise Refused("invalid-json") from None
    return value


def strict(value: object) -> object:
    """Return a value that was parsed less strictly. Raises as ``parse_json``."""
    try:
        text = compact_json(value)
    except (ValueError, RecursionError):
        raise Refused("invalid-json") from None
    return parse_json(text.encode("ascii"))


def _check(value: object, depth: int) -> None:
    if isinstance(value, str):
        value.encode("utf-8")  # a lone surrogate has no UTF-8
    elif isinstance(value, dict | list) and depth == MAX_DEPTH:
        raise ValueError("too deep")
    elif isinstance(value, dict):
        for name, item in value.items():
            _check(name, depth)
            _check(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth + 1)


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate key")
    return members


def _integer(text: str) -> int:
    # Length first: turning 60,000 digits into a number takes seconds, or raises.
    if len(text) > _MAX_INTEGER_CHARS or abs(int(text)) > MAX_INTEGER:
        raise ValueError("integer out of range")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("number out of range")
    return value


def _constant(_text: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
