"""A stream of anything that an edge may say, cut anywhere, and a browser's parser at the other end.

Knows nothing of sockets. The wire may do what wires and proxies do: deliver in any pieces, end lines in another way,
put comments between lines, and break.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import get_args

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from edge.core.control import (
    CaughtUp,
    Control,
    Reauth,
    Reconnect,
    ReconnectReason,
    Reset,
    Rewind,
    Status,
)
from edge.core.cursor import Cursor
from edge.core.event import Event, compact_json
from edge.wire.native import EVENT_TYPES, PING, control_frame, event_frame
from tests.support.machines import machine_settings
from tests.support.sse import EventStreamParser, Message

HOSTILE = '\r\n\0:  dataideventretry\u2028\u0085\ufeff\U0001f600"\\{}'
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.text(HOSTILE),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(HOSTILE), values),
    max_leaves=6,
)
epochs, seqs = st.integers(1, 10**9 - 1), st.integers(1, 10**12 - 1)
events = st.builds(
    Event, epochs, seqs, st.sampled_from(sorted(EVENT_TYPES)), json_values.map(compact_json)
)
controls = st.one_of(
    st.builds(Rewind, st.builds(Cursor, st.integers(0, 10**9 - 1), st.integers(0, 10**12 - 1))),
    st.builds(Reset, st.sampled_from(["expired", "future", "unknown", "gap"]), seqs),
    st.just(CaughtUp()),
    st.builds(Status, st.sampled_from(["degraded", "ok"])),
    st.builds(Reauth, st.integers(1, 60_000)),
    st.builds(Reconnect, st.sampled_from(get_args(ReconnectReason)), st.integers(0, 60_000)),
)
line_ends = st.sampled_from([b"\n", b"\n", b"\r", b"\r\n"])


@dataclass(frozen=True)
class Sent:
    """One message on its way."""

    end: int
    """How many bytes of the connection must arrive for it to be whole."""
    message: Message
    retry_ms: int | None


class StreamMachine(RuleBasedStateMachine):
    """One browser, over any number of connections."""

    def __init__(self) -> None:
        super().__init__()
        self.wire = bytearray()
        self.last_id, self.retry_ms = "", None  # what the sender expects of the browser
        self.connect()

    def connect(self) -> None:
        self.parser = EventStreamParser(last_event_id=self.last_id, _id=self.last_id)
        self.sent: list[Sent] = []
        self.got: list[Message] = []
        self.arrived = 0
        self.comments = 0
        self.wire.clear()

    # --- the edge ---------------------------------------------------------------------------------

    @rule(event=events, end=line_ends, comment_after=st.integers(0, 9))
    def sends(self, event: Event, end: bytes, comment_after: int) -> None:
        message = Message(event.type, event.data, f"{event.epoch}-{event.seq}")
        self.put(event_frame(event), message, end, comment_after)

    @rule(control=controls, end=line_ends, comment_after=st.integers(0, 9))
    def says(self, control: Control, end: bytes, comment_after: int) -> None:
        retry_ms = None
        message = self.told(control)
        if isinstance(control, Reconnect):
            retry_ms = control.retry_ms
        self.put(control_frame(control), message, end, comment_after, retry_ms)

    def told(self, control: Control) -> Message:
        """Write down, in a client's words, what a control says."""
        last_id = self.sent[-1].message.last_event_id if self.sent else self.last_id
        match control:
            case Rewind(to):
                return Message("rewind", f'{{"to":{to.seq}}}', f"{to.epoch}-{to.seq}")
            case Reset(reason, first):
                data = f'{{"reason":"{reason}","first_seq":{first}}}'
                return Message("reset", data, f"0-{first - 1}")
            case CaughtUp():
                return Message("caught_up", "{}", last_id)
            case Status(state):
                return Message("status", f'{{"state":"{state}"}}', last_id)
            case Reauth(in_ms):
                return Message("reauth", f'{{"in_ms":{in_ms}}}', last_id)
            case Reconnect(reason):
                return Message("reconnect", f'{{"reason":"{reason}"}}', last_id)

    def put(
        self,
        frame: bytes,
        message: Message,
        end: bytes,
        comment_after: int,
        retry_ms: int | None = None,
    ) -> None:
        """Put a block on the wire, as something between the edge and the browser may rewrite it."""
        lines = frame.split(b"\n")
        assert lines[-2:] == [b"", b""] and all(lines[:-2]), "one block, and all of it"
        if 0 < comment_after < len(lines) - 1:
            lines.insert(comment_after, b": a proxy is alive")
            self.comments += 1
        self.wire += end.join(lines)
        whole = len(self.wire) - len(end) + 1  # the line is over at its first byte
        self.sent.append(Sent(whole, message, retry_ms))

    @rule(times=st.integers(1, 3))
    def pings(self, times: int) -> None:
        self.wire += PING * times
        self.comments += times

    # --- the wire ---------------------------------------------------------------------------------

    @rule(pieces=st.lists(st.integers(1, 60), min_size=1, max_size=12))
    def delivers(self, pieces: list[int]) -> None:
        for size in pieces:
            piece = bytes(self.wire[self.arrived : self.arrived + size])
            self.arrived += len(piece)
            self.got += self.parser.feed(piece)

    @rule()
    def delivers_everything(self) -> None:
        self.delivers([len(self.wire) - self.arrived])
        assert len(self.got) == len(self.sent)
        assert len(self.parser.comments) == self.comments

    @rule()
    def breaks(self) -> None:
        """An unfinished block is discarded; the browser comes back with the id of the last whole one."""
        assert self.parser.last_event_id == self.last_id
        self.connect()

    # --- the browser ------------------------------------------------------------------------------

    @invariant()
    def every_whole_message_is_there_and_nothing_else(self) -> None:
        whole = [sent for sent in self.sent if sent.end <= self.arrived]
        assert self.got == [sent.message for sent in whole]
        if whole:
            self.last_id = whole[-1].message.last_event_id
        assert self.parser.last_event_id == self.last_id
        told = [sent.retry_ms for sent in whole if sent.retry_ms is not None]
        assert not told or self.parser.retry_ms in (told[-1], *self.announced())
        for message in self.got[-1:]:
            json.loads(message.data)

    def announced(self) -> list[int | None]:
        """Return the retry of the block that is arriving: it counts from its line on."""
        return [sent.retry_ms for sent in self.sent if sent.end > self.arrived][:1]

    def teardown(self) -> None:
        self.delivers_everything()
        self.every_whole_message_is_there_and_nothing_else()


@pytest.mark.timeout(600)
@pytest.mark.proves("P-SSE-4", "P-SSE-10", "P-SSE-11", "P-SSE-12", "T40", "T41")
def test_whatever_is_said_and_however_it_is_cut_a_browser_reads_it_back() -> None:
    run_state_machine_as_test(StreamMachine, settings=machine_settings(100, 25))
