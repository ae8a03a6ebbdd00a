"""How large a piece of a turn may be, and what happens to one that is larger.

Pure functions over text. Knows nothing of events, tools or the wire. An edge journals each event as
ASCII JSON of at most 256 KiB, so what can grow large is measured in that form (``shown_bytes``):
text in many scripts weighs twice there what it weighs in UTF-8.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii  # in C: it sees every piece of text

KIB = 1024
MAX_ARGUMENTS_BYTES = 64 * KIB
MAX_SHOWN_BYTES = 248 * KIB
"""A result; or a message, whose text, reasoning and provider state its completion restates."""
MAX_VALUE_BYTES = 64 * KIB
"""One state value or one custom event."""
MAX_DELTA_CHARACTERS = 15_000
"""At most 60,000 bytes of UTF-8, so that a delta with its envelope stays under 64 KiB."""
MAX_NOTE_CHARACTERS = 2_000
"""A progress message, a prompt or a notice: words for a person, not a payload."""
MAX_NAME_BYTES = KIB
"""A key of the state, or the name of a custom event."""
PREVIEW_BYTES = KIB


class TooLarge(ValueError):
    """A value is larger than an event may be."""

    def __init__(self, what: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"{what} is {size_bytes} bytes; the limit is {limit_bytes}")


def clean_text(text: str) -> str:
    """Return text that UTF-8 can carry: surrogate pairs joined, lone surrogates as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def split_text(text: str) -> Iterator[str]:
    """Cut text into pieces that each fit one delta. Never cuts inside a Unicode scalar value."""
    for start in range(0, len(text), MAX_DELTA_CHARACTERS):
        yield text[start : start + MAX_DELTA_CHARACTERS]


def to_json(value: object) -> str:
    """Return ``value`` as one line of JSON text that UTF-8 can carry.

    Raises:
        TypeError: it holds something that JSON has no form for.
        ValueError: it holds NaN, an infinity, or itself.
    """
    return clean_text(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def bounded_json(value: object, *, what: str, limit_bytes: int = MAX_VALUE_BYTES) -> str:
    """Return JSON text of at most ``limit_bytes``.

    Raises:
        TooLarge: it would be larger.
        TypeError, ValueError: see ``to_json``.
    """
    text = to_json(value)
    size_bytes = len(text.encode())
    if size_bytes > limit_bytes:
        raise TooLarge(what, size_bytes, limit_bytes)
    return text


def bounded_name(text: str, *, what: str) -> str:
    """Return a name that UTF-8 can carry.

    Raises:
        TooLarge: it has more than ``MAX_NAME_BYTES``. It is not cut: two names could become one.
    """
    name = clean_text(text)
    size_bytes = len(name.encode())
    if size_bytes > MAX_NAME_BYTES:
        raise TooLarge(what, size_bytes, MAX_NAME_BYTES)
    return name


def shown_bytes(text: str) -> int:
    """Return what text weighs as an ASCII JSON string."""
    return len(encode_basestring_ascii(text))


def base64_bytes(data: bytes) -> int:
    """Return what bytes weigh in JSON, which carries them in base64."""
    return (len(data) + 2) // 3 * 4


def arguments_fit(text: str) -> bool:
    """Whether the JSON text of a call's arguments may be emitted."""
    return len(text.encode()) <= MAX_ARGUMENTS_BYTES


def result_fits(text: str) -> bool:
    """Whether the JSON text of a result may be emitted."""
    return shown_bytes(text) <= MAX_SHOWN_BYTES


def truncation_marker(text: str) -> str:
    """Return a JSON object that stands for a JSON text too large, and says what was left out.

    It depends on the text alone, so it is the same live and in a replay.
    """
    encoded = text.encode()
    marker = {
        "truncated": True,
        "bytes": len(encoded),
        "sha256": hashlib.sha256(encoded).hexdigest(),
        "preview": encoded[:PREVIEW_BYTES].decode(errors="ignore"),
    }
    return to_json(marker)
