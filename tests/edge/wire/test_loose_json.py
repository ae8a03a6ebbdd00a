"""JSON text of an agent becomes part of ours, whatever it is."""

from __future__ import annotations

import pytest

from edge.core.event import compact_json
from edge.wire.loose_json import parse_loosely


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", "{", "", "[" * 100_000, "\ud800"])
def test_text_that_is_no_json_never_breaks_a_stream(text: str) -> None:
    assert compact_json(parse_loosely(text))


@pytest.mark.parametrize(("levels", "is_taken"), [(64, True), (65, False), (900, False)])
def test_json_that_is_nested_too_deep_travels_as_text(levels: int, is_taken: bool) -> None:
    text = "[" * levels + "]" * levels
    assert (parse_loosely(text) != text) is is_taken
