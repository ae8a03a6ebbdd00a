"""Events: JSON text that is safe on one line, and sizes that are those of its bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.core.event import DELTAS, TERMINAL, Event, compact_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.proves("T41")
@given(values)
def test_any_value_becomes_one_line_of_ascii_and_comes_back(value: object) -> None:
    text = compact_json(value)
    assert text.isascii()
    assert text.isprintable(), "no CR, LF or NUL can end a frame early"
    assert json.loads(text) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_numbers_that_no_browser_reads_back_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        compact_json(value)


def test_an_event_weighs_what_is_stored_of_it() -> None:
    event = Event(1, 1, "message", '{"a":1}', subject="m1", private='{"b":2}')
    assert event.size_bytes == len('{"a":1}') + len("m1") + len('{"b":2}')


def test_no_type_is_both_a_delta_and_an_end() -> None:
    assert not DELTAS & TERMINAL
