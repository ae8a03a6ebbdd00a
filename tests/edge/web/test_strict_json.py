"""Strict JSON: what two parsers might read differently is refused."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.web.problems import Refused
from edge.web.strict_json import MAX_DEPTH, MAX_INTEGER, parse_json

REFUSED = {
    "nothing": b"",
    "truncated": b'{"input":"x"',
    "trailing garbage": b'{"input":"x"}x',
    "two values": b"{}{}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"input":"x"}'.encode("utf-16"),
    "invalid UTF-8": b'{"input":"\xff"}',
    "overlong UTF-8": b'{"input":"\xc0\xaf"}',
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":Infinity}',
    "minus Infinity": b"[-Infinity]",
    "1e999": b'{"a":1e999}',
    "5,000 digits": b"[" + b"9" * 5000 + b"]",
    "2^53+1": b"[9007199254740993]",
    "minus 2^53+1": b"[-9007199254740993]",
    "duplicate key": b'{"input":"a","input":"b"}',
    "duplicate key by escape": b'{"a":1,"\\u0061":2}',
    "nested duplicate key": b'[{"x":{"a":1,"a":1}}]',
    "lone high surrogate": b'{"a":"\\ud800"}',
    "lone low surrogate": b'["\\udc00"]',
    "surrogate in a key": b'{"\\ud800":1}',
    "surrogate bytes": b'["\xed\xa0\x80"]',
    "raw newline in a string": b'["a\nb"]',
    "single quotes": b"{'a':1}",
    "comment": b"{}//",
    "leading zero": b"[01]",
    "depth 33": b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    "depth 100,000": b"[" * 100_000,
    "depth 60,000 of objects": b'{"a":' * 60_000,
}


@pytest.mark.proves("P-HTTP-8")
@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_strict_json_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as caught:
        parse_json(body)
    assert caught.value.code == "invalid-json"
    assert caught.value.__cause__ is None


def test_the_edges_of_what_is_allowed() -> None:
    assert parse_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert parse_json(f"[{MAX_INTEGER},{-MAX_INTEGER}]".encode()) == [MAX_INTEGER, -MAX_INTEGER]
    assert parse_json(b' {"a":"\\ud83d\\ude00"} ') == {"a": "\U0001f600"}


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values, st.booleans())
def test_every_honest_value_is_read_as_it_is(value: object, ascii_only: bool) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        expected = json.loads(body)
        body.decode("utf-8")
        json.dumps(expected, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        with pytest.raises(Refused):
            parse_json(body)
    else:
        assert parse_json(body) == expected


@given(st.binary(max_size=40))
def test_no_bytes_lead_to_anything_but_a_value_or_a_refusal(body: bytes) -> None:
    try:
        value = parse_json(body)
    except Refused:
        return
    assert not isinstance(value, float) or math.isfinite(value)
