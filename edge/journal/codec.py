"""Turns a record into plain fields and back; both durable stores keep these.

Knows nothing of SQL or Firestore. A record is its header (one column or field each), its kind, and
a body of strings, numbers, booleans, lists and objects. An event does not repeat its record's epoch,
and leaves out what has its default, since events are nearly all that a journal stores.

Invariant: ``decode(kind_of(r), header_of(r), body_of(r)) == r``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edge.core.errors import LogBroken
from edge.core.event import Event
from edge.core.log import Acquire, AnyRecord, Cancel, Events, Resolve

HEADER = ("slot", "epoch", "writer", "last_seq", "expire_at_ms")

_KINDS = {Acquire: "acquire", Events: "events", Cancel: "cancel", Resolve: "resolve"}


def kind_of(record: AnyRecord) -> str:
    """Return the stored name of the record's type."""
    return _KINDS[type(record)]


def header_of(record: AnyRecord) -> dict[str, Any]:
    """Return what every record says."""
    return {name: getattr(record, name) for name in HEADER}


def body_of(record: AnyRecord) -> dict[str, Any]:
    """Return what only a record of its kind says."""
    if isinstance(record, Events):
        events = [_event_fields(event) for event in record.events]
        return {"acquire_slot": record.acquire_slot, "events": events}
    if isinstance(record, Acquire):
        return {"epoch_starts": {str(epoch): seq for epoch, seq in record.epoch_starts}}
    if isinstance(record, Cancel):
        return {"turn_id": record.turn_id}
    return {
        "turn_id": record.turn_id,
        "call_id": record.call_id,
        "decision": record.decision,
    }


def decode(kind: str, header: Mapping[str, Any], body: Mapping[str, Any]) -> AnyRecord:
    """Read a stored record back.

    Raises:
        LogBroken: no version of this program that we know of wrote it.
    """
    try:
        return _DECODERS[kind](header, body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise LogBroken(f"slot {header.get('slot')} holds no record: {error!r}") from error


def _event_fields(event: Event) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "seq": event.seq,
        "type": event.type,
        "data": event.data,
        "at": event.at_ms,
    }
    if event.subject:
        fields["subject"] = event.subject
    if event.private:
        fields["private"] = event.private
    if not event.structural:
        fields["structural"] = False
    return fields


def _event(epoch: int, fields: Mapping[str, Any]) -> Event:
    return Event(
        epoch=epoch,
        seq=fields["seq"],
        type=fields["type"],
        data=fields["data"],
        subject=fields.get("subject", ""),
        structural=fields.get("structural", True),
        private=fields.get("private", ""),
        at_ms=fields["at"],
    )


def _decode_acquire(header: Mapping[str, Any], body: Mapping[str, Any]) -> Acquire:
    # Stores do not keep the order of an object's keys; epochs only ever go up.
    starts = sorted((int(epoch), seq) for epoch, seq in body["epoch_starts"].items())
    return Acquire(**header, epoch_starts=tuple(starts))


def _decode_events(header: Mapping[str, Any], body: Mapping[str, Any]) -> Events:
    events = tuple(_event(header["epoch"], fields) for fields in body["events"])
    return Events(**header, acquire_slot=body["acquire_slot"], events=events)


def _decode_cancel(header: Mapping[str, Any], body: Mapping[str, Any]) -> Cancel:
    return Cancel(**header, turn_id=body["turn_id"])


def _decode_resolve(header: Mapping[str, Any], body: Mapping[str, Any]) -> Resolve:
    names = ("turn_id", "call_id", "decision")
    return Resolve(**header, **{name: body[name] for name in names})


_DECODERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], AnyRecord]] = {
    "acquire": _decode_acquire,
    "events": _decode_events,
    "cancel": _decode_cancel,
    "resolve": _decode_resolve,
}
