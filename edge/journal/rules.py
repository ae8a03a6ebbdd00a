"""What every store of the journal does alike: the limits of an append, retention, ages.

Knows nothing of any store. The sizes are reckoned and not measured, so that each store takes and
refuses exactly the same records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from edge.core.log import Acquire, AnyRecord, Cancel, Events
from edge.ports import AppendRefused, TurnEntry

RECORD_LIMIT_BYTES = 1_000_000
"""Firestore takes documents up to 1,048,576 bytes, names included; the rest is margin."""

APPEND_LIMIT_BYTES = 3_000_000
"""An append is one request, and the Firestore emulator takes 4 MiB (production: 10 MiB)."""

LOG_RETENTION_SECONDS = 24 * 3600.0
HEAD_OUTLIVES_LOG_SECONDS = 72 * 3600.0
"""A head that vanished before its log would let the log begin again over old records."""

MAX_SLOT = 9_999_999_999
"""Ten digits, so that slots sort as text where a store keys by text."""

_MAX_TIME_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, where a protobuf ``Timestamp`` ends."""

_MAX_NUMBER = 2**63 - 1

# Names and numbers of a stored record, of one event, of one epoch start: rounded up from Firestore's
# size rules (a field costs its name + 1, a string its UTF-8 + 1, a number 8).
_RECORD_OVERHEAD_BYTES = 512
_EVENT_OVERHEAD_BYTES = 96
_EPOCH_START_BYTES = 32


def check_append(records: Sequence[AnyRecord], turn: TurnEntry | None) -> None:
    """Make sure that every store can hold the append.

    That the slots continue the log is not checked: only their writer knows what it has read.

    Raises:
        AppendRefused: it is empty, too large, or says something that cannot be stored.
    """
    if not records:
        raise AppendRefused("an append needs a record")
    if len({record.slot for record in records}) < len(records):
        raise AppendRefused("an append names a slot twice")
    sizes = [_checked_size(record) for record in records]
    if sum(sizes) > APPEND_LIMIT_BYTES:
        raise AppendRefused(f"append of {sum(sizes)} bytes is above {APPEND_LIMIT_BYTES}")
    if turn is not None:
        _text_size(turn.turn_id, turn.body_hash)


def record_size_bytes(record: AnyRecord) -> int:
    """Reckon what a record weighs in a store.

    Raises:
        AppendRefused: its text has no UTF-8 form (a lone surrogate).
    """
    size = _RECORD_OVERHEAD_BYTES + _text_size(record.writer)
    if isinstance(record, Acquire):
        return size + _EPOCH_START_BYTES * len(record.epoch_starts)
    if isinstance(record, Cancel):
        return size + _text_size(record.turn_id)
    if isinstance(record, Events):
        texts = (_text_size(e.type, e.subject, e.data, e.private) for e in record.events)
        return size + _EVENT_OVERHEAD_BYTES * len(record.events) + sum(texts)
    return size + _text_size(record.turn_id, record.call_id, record.decision)


def turn_expiry_ms(records: Sequence[AnyRecord]) -> int:
    """Return when a turn entry expires: with the last of the records it was created with."""
    return max(record.expire_at_ms for record in records)


def head_expiry_ms(now_ms: int, log_retention_seconds: float) -> int:
    """Return when a head expires that was written now.

    An owner renews every few seconds for as long as it appends, so this is 72 hours after its newest
    record's expiry, within one renewal; the appends themselves need not touch the head.
    """
    return now_ms + int((log_retention_seconds + HEAD_OUTLIVES_LOG_SECONDS) * 1000)


def age_seconds(now_ms: int, then_ms: int | None) -> float:
    """Return how long ago something was; infinity if it never was."""
    return math.inf if then_ms is None else max(0, now_ms - then_ms) / 1000


def _checked_size(record: AnyRecord) -> int:
    if not 0 < record.slot <= MAX_SLOT:
        raise AppendRefused(f"slot {record.slot} is out of range")
    if not 0 < record.expire_at_ms <= _MAX_TIME_MS:
        raise AppendRefused(f"slot {record.slot} expires out of range")
    if not (0 <= record.epoch <= _MAX_NUMBER and 0 <= record.last_seq <= _MAX_NUMBER):
        raise AppendRefused(f"slot {record.slot} has a number out of range")
    if isinstance(record, Events) and {e.epoch for e in record.events} != {record.epoch}:
        raise AppendRefused(f"slot {record.slot} has no events, or events of another epoch")
    size = record_size_bytes(record)
    if size > RECORD_LIMIT_BYTES:
        raise AppendRefused(f"record of {size} bytes is above {RECORD_LIMIT_BYTES}")
    return size


def _text_size(*texts: str) -> int:
    try:
        # Nearly all text is ASCII, and for that the length is at hand.
        return sum(len(t) if t.isascii() else len(t.encode()) for t in texts)
    except UnicodeEncodeError as error:
        raise AppendRefused("text with a lone surrogate") from error
