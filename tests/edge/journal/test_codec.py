"""Records survive both stored forms unchanged, and what is no record is told from one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.core.errors import LogBroken
from edge.core.event import Event, compact_json
from edge.core.log import Acquire, AnyRecord, Cancel, Events, Resolve
from edge.journal.codec import body_of, decode, header_of, kind_of
from edge.journal.firestore_documents import Names, read_record, record_creation
from edge.journal.rules import record_size_bytes
from tests.support.journal_records import acquire, events

NAMES = Names("projects/p/databases/(default)")

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(0, 2**63 - 1)
times = st.integers(1, 253_402_300_799_999)


@st.composite
def headers(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "slot": draw(st.integers(1, 9_999_999_999)),
        "epoch": draw(numbers),
        "writer": draw(texts),
        "last_seq": draw(numbers),
        "expire_at_ms": draw(times),
    }


@st.composite
def records(draw: st.DrawFn) -> AnyRecord:
    header = draw(headers())
    kind = draw(st.sampled_from(["acquire", "events", "cancel", "resolve"]))
    if kind == "acquire":
        starts = draw(st.dictionaries(numbers, numbers, max_size=64))
        return Acquire(**header, epoch_starts=tuple(sorted(starts.items())))
    if kind == "cancel":
        return Cancel(**header, turn_id=draw(texts))
    if kind == "resolve":
        turn_id, call_id, decision = draw(st.tuples(texts, texts, texts))
        return Resolve(**header, turn_id=turn_id, call_id=call_id, decision=decision)
    event = st.builds(
        Event,
        epoch=st.just(header["epoch"]),
        seq=numbers,
        type=texts,
        data=texts,
        subject=texts,
        structural=st.booleans(),
        private=texts,
        at_ms=numbers,
    )
    run = tuple(draw(st.lists(event, min_size=1, max_size=5)))
    return Events(**header, acquire_slot=draw(numbers), events=run)


@given(records())
def test_a_record_survives_as_json(record: AnyRecord) -> None:
    body = json.loads(compact_json(body_of(record)))
    assert decode(kind_of(record), header_of(record), body) == record


@given(records())
def test_a_record_survives_as_a_firestore_document(record: AnyRecord) -> None:
    write = record_creation(NAMES.record("s1", record.slot), record)
    sent = type(write).FromString(write.SerializeToString())
    assert read_record(sent.update) == record


@given(records())
def test_a_record_weighs_no_less_than_firestore_says(record: AnyRecord) -> None:
    document = record_creation(NAMES.record("s" * 64, record.slot), record).update
    assert firestore_size_bytes(document) <= record_size_bytes(record)


def firestore_size_bytes(document: Any) -> int:
    """The size of a document by Firestore's published rules."""
    path = document.name.split("/documents/")[1].split("/")
    return sum(map(_text_size, path)) + 16 + _fields_size(document.fields) + 32


def _fields_size(fields: Any) -> int:
    return sum(_text_size(name) + _value_size(value) for name, value in fields.items())


def _value_size(value: Any) -> int:
    kind = value.WhichOneof("value_type")
    if kind == "map_value":
        return _fields_size(value.map_value.fields)
    if kind == "array_value":
        return sum(_value_size(item) for item in value.array_value.values)
    if kind == "string_value":
        return _text_size(value.string_value)
    return 1 if kind == "boolean_value" else 8


def _text_size(text: str) -> int:
    return len(text.encode()) + 1


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("unheard-of", {}),
        ("cancel", {}),
        ("events", {"acquire_slot": 1, "events": [{"seq": 1}]}),
        ("events", {"acquire_slot": 1, "events": 5}),
        ("acquire", {"epoch_starts": {"one": 1}}),
        ("acquire", {"epoch_starts": []}),
    ],
)
def test_what_is_no_record_is_told_from_one(kind: str, body: dict[str, Any]) -> None:
    with pytest.raises(LogBroken, match="slot 1 holds no record"):
        decode(kind, header_of(acquire(1)), body)


@pytest.mark.parametrize("field", ["kind", "epoch", "expire_at"])
def test_a_document_without_a_field_is_no_record(field: str) -> None:
    document = record_creation(NAMES.record("s1", 2), events(2, 1)).update
    del document.fields[field]
    with pytest.raises(LogBroken):
        read_record(document)


@pytest.mark.parametrize("id_", ["", "a/b", ".", "..", "__x__"])
def test_no_id_can_turn_a_path_into_another(id_: str) -> None:
    with pytest.raises(ValueError, match="cannot name a document"):
        NAMES.head(id_)
    with pytest.raises(ValueError, match="cannot name a document"):
        NAMES.turn("s1", id_)


@pytest.mark.parametrize("id_", ["__x", "x__", "a.b", "..."])
def test_an_id_that_merely_looks_odd_names_a_document(id_: str) -> None:
    assert NAMES.head(id_).endswith(f"/agent_sessions/{id_}")
