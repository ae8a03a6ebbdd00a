"""The native format: what is sent is what a browser reads back, and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.core.control import CaughtUp, Reauth, Reconnect, Reset, Rewind, Status
from edge.core.cursor import Cursor
from edge.core.event import Event, compact_json
from edge.wire.native import EVENT_TYPES, PING, PING_EVENT, control_frame, event_frame
from tests.support.sse import EventStreamParser, parse

HOSTILE = [
    "",
    "\r\n\r\nid: 9-9\nevent: done\ndata: {}\n\n",
    "\rid: 9-999\revent: done\r\r",
    "\u2028\u2029\x85\x0b\x0c\x1c",
    "nul \x00 and \ufeff and \U0001f600",
    "line " * 1000,
]

events = st.builds(
    Event,
    epoch=st.integers(1, 10**9 - 1),
    seq=st.integers(1, 10**12 - 1),
    type=st.sampled_from(sorted(EVENT_TYPES)),
    data=st.dictionaries(st.text(max_size=5), st.text(max_size=40), max_size=3).map(compact_json),
)


def token(data: str, kind: str = "token") -> Event:
    return Event(epoch=2, seq=57, type=kind, data=data)


@pytest.mark.proves("P-SSE-4")
def test_an_event_is_one_block_of_id_type_and_data() -> None:
    frame = event_frame(token('{"text":"Hi"}'))
    assert frame == b'id: 2-57\nevent: token\ndata: {"text":"Hi"}\n\n'


@given(st.lists(events, max_size=5), st.data())
def test_what_is_sent_is_read_back_however_the_bytes_are_cut(
    sent: list[Event], data: st.DataObject
) -> None:
    stream = b"".join(PING + event_frame(event) for event in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parser = EventStreamParser()
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    got = [message for piece in pieces for message in parser.feed(piece)]
    assert [(m.type, m.data, m.last_event_id) for m in got] == [
        (event.type, event.data, f"{event.epoch}-{event.seq}") for event in sent
    ]


@pytest.mark.proves("T41", "P-SSE-4")
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_comes_back_as_the_one_event_that_it_is_in(text: str) -> None:
    (message,) = parse(event_frame(token(compact_json({"text": text}))))
    assert (message.type, message.last_event_id) == ("token", "2-57")
    assert json.loads(message.data) == {"text": text}


@pytest.mark.proves("T40")
@pytest.mark.parametrize(
    "data", ["a\nb", "a\rb", "a\r\n\r\nid: 9-9", "\u2028", "\x00", "é", "\x7f", "\x1b"]
)
def test_data_that_is_not_one_ascii_line_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="ASCII"):
        event_frame(token(data))


@pytest.mark.parametrize("kind", ["", "ping", "token\ndata: x", "done\r", "Token"])
def test_a_type_outside_of_the_closed_set_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="type"):
        event_frame(token("{}", kind))


@pytest.mark.proves("T40")
def test_ids_can_only_be_numbers() -> None:
    forged = Event(epoch="1-1\nevent: done\ndata: x\n\n", seq=1, type="token", data="{}")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        event_frame(forged)


@pytest.mark.proves("P-SSE-11")
def test_a_rewind_names_the_surviving_position_as_its_id() -> None:
    frame = control_frame(Rewind(Cursor(1, 50)))
    assert frame == b'id: 1-50\nevent: rewind\ndata: {"to":50}\n\n'


@pytest.mark.proves("P-SSE-12")
def test_a_reset_leaves_the_browser_right_before_what_follows() -> None:
    (message,) = parse(control_frame(Reset("expired", 101)))
    assert message.last_event_id == "0-100"
    assert message.json == {"reason": "expired", "first_seq": 101}


def test_a_control_without_a_position_leaves_the_last_id_alone() -> None:
    parser = EventStreamParser()
    parser.feed(event_frame(token("{}")))
    for control in (CaughtUp(), Status("degraded"), Reauth(60_000), Reconnect("rolling", 2500)):
        (message,) = parser.feed(control_frame(control))
        assert message.last_event_id == "2-57"


@pytest.mark.proves("P-SSE-21")
def test_a_warning_says_how_long_the_credentials_hold_yet() -> None:
    assert control_frame(Reauth(59_500)) == b'event: reauth\ndata: {"in_ms":59500}\n\n'


def test_a_reconnect_carries_its_retry_in_a_block_with_data() -> None:
    parser = EventStreamParser()
    (message,) = parser.feed(control_frame(Reconnect("deadline", 1234)))
    assert (message.type, message.json) == ("reconnect", {"reason": "deadline"})
    assert parser.retry_ms == 1234


def test_a_ping_is_a_comment_that_no_client_takes_for_a_message() -> None:
    parser = EventStreamParser()
    assert parser.feed(PING * 3) == []
    assert parser.comments == [" ping"] * 3
    assert not PING.endswith(b"\n\n")


@pytest.mark.proves("T52")
def test_a_ping_event_is_heard_and_leaves_the_last_id_as_it_was() -> None:
    heard = parse(event_frame(token("{}")) + PING_EVENT)
    assert [(m.type, m.json, m.last_event_id) for m in heard] == [
        ("token", {}, "2-57"),
        ("ping", {}, "2-57"),
    ]
