"""The judge is judged: the parser follows the WHATWG rules that browsers follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.sse import EventStreamParser

STREAMS = json.loads(Path(__file__).with_name("event_streams.json").read_text("utf-8"))["streams"]


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: str(stream["name"]))
def test_a_stream_is_read_as_a_browser_reads_it_whole_and_byte_by_byte(
    stream: dict[str, Any], end: str
) -> None:
    sent = stream["text"].replace("\n", end).encode()
    messages = [(m["type"], m["data"], m["id"]) for m in stream["messages"]]
    for pieces in ([sent], [bytes([byte]) for byte in sent]):
        parser = EventStreamParser()
        got = [message for piece in pieces for message in parser.feed(piece)]
        assert [(m.type, m.data, m.last_event_id) for m in got] == messages
        assert parser.last_event_id == stream["last_event_id"]


def test_a_block_without_data_only_moves_the_id() -> None:
    parser = EventStreamParser()
    assert parser.feed(b"id: 9\nevent: x\n\n") == []
    assert parser.last_event_id == "9"


def test_bogus_retry_unknown_fields_and_unfinished_blocks_are_ignored() -> None:
    parser = EventStreamParser()
    assert parser.feed(b"retry: 1e3\nfoo: bar\n:c\ndata: x\n") == []
    assert (parser.retry_ms, parser.comments) == (None, ["c"])
