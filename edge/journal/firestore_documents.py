"""Firestore documents as raw protobuf: their names, and records, heads and turn entries in them.

Knows nothing of RPCs. Raw messages, because the client library's own builders cost ten to thirty
times as much CPU, and an edge builds one map per event.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.cloud.firestore_v1.types import (
    BatchGetDocumentsRequest,
    BatchWriteRequest,
    CommitRequest,
    DocumentTransform,
    RunQueryRequest,
    StructuredQuery,
    Write,
)

from edge.core.errors import LogBroken
from edge.core.log import AnyRecord
from edge.journal.codec import HEADER, body_of, decode, header_of, kind_of
from edge.journal.rules import age_seconds
from edge.ports import Head, Renewal, TurnEntry

# proto-plus classes wrap these; they have no static types.
RawBatchGet: Any = BatchGetDocumentsRequest.pb()
RawBatchWrite: Any = BatchWriteRequest.pb()
RawCommit: Any = CommitRequest.pb()
RawQuery: Any = RunQueryRequest.pb()
RawWrite: Any = Write.pb()

_REQUEST_TIME = int(DocumentTransform.FieldTransform.ServerValue.REQUEST_TIME)
_ABOVE = int(StructuredQuery.FieldFilter.Operator.GREATER_THAN)
_AT_LEAST = int(StructuredQuery.FieldFilter.Operator.GREATER_THAN_OR_EQUAL)
_ASCENDING = int(StructuredQuery.Direction.ASCENDING)

_RESERVED = re.compile(r"__.*__", re.DOTALL)

_HINTS = ("epoch", "last_slot", "expire_at")


@dataclass(frozen=True, slots=True)
class Names:
    """Where a journal keeps its documents in a database."""

    database: str
    """``projects/{project}/databases/{database}``"""

    def head(self, session_id: str) -> str:
        return f"{self.database}/documents/agent_sessions/{_segment(session_id)}"

    def record(self, session_id: str, slot: int) -> str:
        # Ten digits: ids sort as text.
        return f"{self.head(session_id)}/log/{max(0, slot):010d}"

    def turn(self, session_id: str, turn_id: str) -> str:
        return f"{self.head(session_id)}/turns/{_segment(turn_id)}"


def head_creation(name: str, owner: str, expire_at_ms: int) -> Any:
    """Return the write that creates a head."""
    hints = {"epoch": 0, "last_slot": 0}
    return _creation(name, {"owner": owner, **hints}, expire_at_ms)


def record_creation(name: str, record: AnyRecord) -> Any:
    """Return the write that creates a record."""
    fields = {**header_of(record), "kind": kind_of(record), **body_of(record)}
    return _creation(name, fields, fields.pop("expire_at_ms"))


def turn_creation(name: str, turn: TurnEntry, expire_at_ms: int) -> Any:
    """Return the write that creates a turn entry."""
    fields = {"turn_id": turn.turn_id, "body_hash": turn.body_hash, "slot": turn.slot}
    return _creation(name, fields, expire_at_ms)


def head_renewal(document: Any, renewal: Renewal, expire_at_ms: int) -> Any:
    """Return the write that stores an owner's hints, unless the head changes meanwhile."""
    write = RawWrite()
    write.update.name = document.name
    fields = write.update.fields
    for hint in _HINTS[:-1]:
        _put(fields[hint], getattr(renewal, hint))
    expire_at_ms = max(expire_at_ms, expiry_ms(document))
    fields["expire_at"].timestamp_value.FromMilliseconds(expire_at_ms)
    write.update_mask.field_paths.extend(_HINTS)  # never ``owner``
    if renewal.released:
        write.update_mask.field_paths.append("renewed_at")  # in the mask and absent: removed
    else:
        _stamp(write, "renewed_at")
    write.current_document.update_time.CopyFrom(document.update_time)
    return write


def head_watch(name: str) -> Any:
    """Return the write that stores when a head was last watched."""
    write = RawWrite()
    write.update.name = name
    write.update_mask.SetInParent()  # an empty mask: only what is stamped changes
    _stamp(write, "watched_at")
    write.current_document.exists = True
    return write


def records_query(names: Names, session_id: str, after_slot: int, limit: int) -> Any:
    """Return the query for records in slot order; it needs no index."""
    query = _log_query(names, session_id, limit)
    place = query.structured_query.where.field_filter
    place.field.field_path = "__name__"
    place.op = _ABOVE
    place.value.reference_value = names.record(session_id, after_slot)
    _order(query, "__name__")
    return query


def locate_query(names: Names, session_id: str, seq: int) -> Any:
    """Return the query for the first record that reaches ``seq``, without its content."""
    query = _log_query(names, session_id, limit=1)
    reach = query.structured_query.where.field_filter
    reach.field.field_path = "last_seq"
    reach.op = _AT_LEAST
    reach.value.integer_value = seq
    _order(query, "last_seq")
    for path in ("slot", "expire_at"):
        query.structured_query.select.fields.add().field_path = path
    return query


def read_record(document: Any) -> AnyRecord:
    """Read a record's document back. Raises ``LogBroken``."""
    fields = {name: _get(value) for name, value in document.fields.items()}
    fields["expire_at_ms"] = fields.pop("expire_at", None)
    missing = [name for name in (*HEADER, "kind") if fields.get(name) is None]
    if missing:
        raise LogBroken(f"a record has no {missing[0]}")
    return decode(fields["kind"], {name: fields[name] for name in HEADER}, fields)


def read_turn(document: Any) -> TurnEntry:
    """Read a turn's document back."""
    fields = document.fields
    return TurnEntry(
        turn_id=fields["turn_id"].string_value,
        body_hash=fields["body_hash"].string_value,
        slot=fields["slot"].integer_value,
    )


def read_head(document: Any, now_ms: int) -> Head:
    """Read a head's document back, with ages by the store's clock."""
    fields = document.fields
    renewed_at_ms = _stamped(fields, "renewed_at")
    return Head(
        owner=fields["owner"].string_value,
        epoch=epoch(document),
        last_slot=fields["last_slot"].integer_value,
        renewed_seconds_ago=age_seconds(now_ms, renewed_at_ms),
        renewed_at_ms=renewed_at_ms or 0,
        watched_seconds_ago=age_seconds(now_ms, _stamped(fields, "watched_at")),
    )


def epoch(document: Any) -> int:
    """Return the epoch in a head's document."""
    return int(document.fields["epoch"].integer_value)


def slot(document: Any) -> int:
    """Return the slot in a record's document."""
    return int(document.fields["slot"].integer_value)


def expiry_ms(document: Any) -> int:
    """Return when a document of any kind expires."""
    return int(document.fields["expire_at"].timestamp_value.ToMilliseconds())


def _segment(id_: str) -> str:
    """Let nothing into a path that would make it another path."""
    if "/" in id_ or id_ in ("", ".", "..") or _RESERVED.fullmatch(id_):
        raise ValueError(f"{id_!r} cannot name a document")
    return id_


def _creation(name: str, fields: Mapping[str, Any], expire_at_ms: int) -> Any:
    write = RawWrite()
    write.update.name = name
    for field, value in fields.items():
        _put(write.update.fields[field], value)
    write.update.fields["expire_at"].timestamp_value.FromMilliseconds(expire_at_ms)
    write.current_document.exists = False
    return write


def _stamp(write: Any, field: str) -> None:
    transform = write.update_transforms.add()
    transform.field_path = field
    transform.set_to_server_value = _REQUEST_TIME


def _log_query(names: Names, session_id: str, limit: int) -> Any:
    query = RawQuery()
    query.parent = names.head(session_id)
    query.structured_query.from_.add().collection_id = "log"
    query.structured_query.limit.value = limit
    return query


def _order(query: Any, path: str) -> None:
    order = query.structured_query.order_by.add()
    order.field.field_path = path
    order.direction = _ASCENDING


def _stamped(fields: Any, name: str) -> int | None:
    return fields[name].timestamp_value.ToMilliseconds() if name in fields else None


def _put(target: Any, value: object) -> None:
    if isinstance(value, str):
        target.string_value = value
    elif isinstance(value, bool):
        target.boolean_value = value
    elif isinstance(value, int):
        target.integer_value = value
    elif isinstance(value, Mapping):
        target.map_value.SetInParent()
        for name, item in value.items():
            _put(target.map_value.fields[name], item)
    elif isinstance(value, Sequence):
        for item in value:
            _put(target.array_value.values.add(), item)


def _get(value: Any) -> Any:
    kind = value.WhichOneof("value_type")
    if kind == "map_value":
        return {name: _get(item) for name, item in value.map_value.fields.items()}
    if kind == "array_value":
        return [_get(item) for item in value.array_value.values]
    if kind == "timestamp_value":
        return value.timestamp_value.ToMilliseconds()
    return getattr(value, kind)
