"""The order that a runtime promised, held to without a network."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.upstream.attempt import AttemptReader
from edge.upstream.fields import WireFault
from tests.edge.upstream.conftest import Counts
from tests.support.scripted_runtime import finished, suspended, text, wrap

NEWER = pb.AgentEvent.FromString(b"\x10\x01\x9a\x06\x02\x08\x01")
"""Index 1, and a payload in a field that this edge does not know."""


def types(reader: AttemptReader, *events: tuple[int, Message]) -> list[str]:
    return [draft.type for draft in reader.read([wrap(p, index=i) for i, p in events])]


@pytest.fixture
def reader(counts: Counts) -> AttemptReader:
    return AttemptReader("t1", counts)


def test_events_come_out_in_order_without_the_runtimes_own_start(reader: AttemptReader) -> None:
    first = types(reader, (1, pb.TurnStarted()), (2, text("m1", "a")), (3, text("m1", "b")))
    assert first == ["token", "token"]
    assert types(reader, (4, finished())) == ["done"]


def test_a_heartbeat_repeats_the_index_before_it(reader: AttemptReader) -> None:
    assert types(reader, (0, pb.Heartbeat()), (1, text("m1", "a")), (1, pb.Heartbeat())) == [
        "token"
    ]
    assert types(reader, (1, pb.Heartbeat()), (2, text("m1", "b"))) == ["token"]


def test_an_unknown_payload_is_skipped_and_counted(reader: AttemptReader, counts: Counts) -> None:
    assert list(reader.read([NEWER])) == []
    assert types(reader, (2, text("m1", "a"))) == ["token"]
    assert counts.counted == {"runtime_events_skipped": 1}


@pytest.mark.proves("P-RUN-1")
@pytest.mark.parametrize("index", [0, 1, 3, -2])
def test_a_gap_a_repeat_or_a_step_back_is_a_fault(reader: AttemptReader, index: int) -> None:
    assert types(reader, (1, text("m1", "a"))) == ["token"]
    with pytest.raises(WireFault, match="where 2 was due"):
        types(reader, (index, text("m1", "b")))


def test_a_heartbeat_with_an_index_of_its_own_is_a_fault(reader: AttemptReader) -> None:
    with pytest.raises(WireFault):
        types(reader, (1, pb.Heartbeat()))


@pytest.mark.parametrize("end", [finished(), suspended(pb.SUSPEND_REASON_CHECKPOINT)])
@pytest.mark.parametrize("more", [text("m1", "a"), pb.Heartbeat(), finished()])
def test_nothing_follows_the_last_event(reader: AttemptReader, end: Message, more: Message) -> None:
    assert len(types(reader, (1, end))) == 1
    with pytest.raises(WireFault, match="follows the last"):
        types(reader, (2, more))


def test_what_stands_before_a_fault_is_read(reader: AttemptReader) -> None:
    events = [wrap(text("m1", "a"), index=1), wrap(text("m1", "b"), index=5)]
    drafts = reader.read(events)
    assert next(drafts).index == 1
    with pytest.raises(WireFault):
        next(drafts)
