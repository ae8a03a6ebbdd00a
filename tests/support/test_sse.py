"""The judge is judged: the parser follows the WHATWG rules that browsers follow."""

from __future__ import annotations

import pytest

from tests.support.sse import EventStreamParser, parse


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_all_three_line_endings_end_a_line(end: bytes) -> None:
    (message,) = parse(end.join([b"id: 1", b"event: a", b"data: x", b"data: y", b"", b""]))
    assert (message.type, message.data, message.last_event_id) == ("a", "x\ny", "1")


def test_a_byte_order_mark_is_stripped_once_and_text_may_be_cut_anywhere() -> None:
    parser = EventStreamParser()
    stream = "\ufeffdata: é\U0001f600\n\n".encode()
    got = [message.data for byte in stream for message in parser.feed(bytes([byte]))]
    assert got == ["é\U0001f600"]


def test_an_id_with_nul_is_ignored_and_an_empty_one_resets() -> None:
    first, second = parse(b"id: 7\ndata: a\n\nid: 8\0\ndata: b\n\n")
    assert (first.last_event_id, second.last_event_id) == ("7", "7")
    assert parse(b"id: 7\ndata: a\n\nid\ndata: b\n\n")[1].last_event_id == ""


def test_a_block_without_data_only_moves_the_id() -> None:
    parser = EventStreamParser()
    assert parser.feed(b"id: 9\nevent: x\n\n") == []
    assert parser.last_event_id == "9"


def test_bogus_retry_unknown_fields_and_unfinished_blocks_are_ignored() -> None:
    parser = EventStreamParser()
    assert parser.feed(b"retry: 1e3\nfoo: bar\n:c\ndata: x\n") == []
    assert (parser.retry_ms, parser.comments) == (None, ["c"])


def test_one_space_after_the_colon_goes_and_no_more() -> None:
    assert [m.data for m in parse(b"data:x\n\ndata:  y\n\ndata\n\n")] == ["x", " y", ""]
