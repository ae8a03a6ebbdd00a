"""The outbox: dense seqs, frozen records, and a suffix that can be taken back."""

from __future__ import annotations

import pytest

from edge.core.event import Event
from edge.core.flush import RECORD_LIMIT_EVENTS, FlushPolicy
from edge.core.log import LogView
from edge.core.outbox import Outbox
from tests.core.log_builder import EXPIRE_MS, LogBuilder
from tests.core.samples import message, start, token, tool_start

RETENTION_MS = 1_000
NOW_MS = EXPIRE_MS - 500


def outbox() -> tuple[Outbox, LogView]:
    """An outbox whose log has two events, and the view that it numbers after."""
    log = LogBuilder()
    log.acquire("edge-a")
    log.write(start(), token())
    return Outbox(log.view, "edge-a", RETENTION_MS, FlushPolicy()), log.view


def number(box: Outbox, *drafts: object, seconds: float = 7.0) -> list[Event]:
    return [box.number(draft, seconds, NOW_MS) for draft in drafts]  # type: ignore[arg-type]


@pytest.mark.proves("S18")
def test_events_of_one_moment_get_consecutive_seqs_of_the_owners_epoch() -> None:
    box, view = outbox()
    numbered = number(box, token(), token())
    record = box.freeze(7.0, NOW_MS)
    numbered += number(box, message())
    assert [(e.epoch, e.seq) for e in numbered] == [(1, 3), (1, 4), (1, 5)]
    view.apply(record)
    box.forget_frozen()
    assert [e.seq for e in number(box, token())] == [6]
    assert {e.at_ms for e in numbered} == {NOW_MS}


def test_a_record_stands_at_the_slot_after_the_last_one_read() -> None:
    box, view = outbox()
    number(box, token(), message())
    record = box.freeze(7.0, NOW_MS)
    assert (record.slot, record.epoch, record.writer, record.acquire_slot) == (3, 1, "edge-a", 1)
    assert record.last_seq == 4
    view.apply(record)


@pytest.mark.proves("P-LOG-14")
def test_an_expiry_never_goes_down_though_the_wall_clock_does() -> None:
    box, _ = outbox()
    number(box, token())
    assert box.freeze(7.0, EXPIRE_MS - 50_000).expire_at_ms == EXPIRE_MS
    assert box.cancel_record("t1", NOW_MS).expire_at_ms == NOW_MS + RETENTION_MS


@pytest.mark.proves("P-LOG-3")
def test_what_is_numbered_after_the_freeze_is_not_in_the_record() -> None:
    box, view = outbox()
    first = number(box, token())
    record = box.freeze(7.0, NOW_MS)
    later = number(box, message())
    assert list(record.events) == first
    view.apply(record)
    box.forget_frozen()
    assert list(box.freeze(8.0, NOW_MS).events) == later


def test_a_thawed_record_goes_first_again_with_the_same_seqs_at_the_next_slot() -> None:
    log = LogBuilder()
    log.acquire("edge-a")
    box = Outbox(log.view, "edge-a", RETENTION_MS, FlushPolicy())
    events = number(box, start(), token())
    box.freeze(7.0, NOW_MS)
    events += number(box, message())
    log.cancel()
    box.thaw()
    record = box.freeze(7.0, NOW_MS)
    assert record.slot == 3
    assert list(record.events) == events


def test_only_the_trailing_tool_starts_are_taken_back_and_their_seqs_are_given_again() -> None:
    box, _ = outbox()
    number(box, tool_start("c0"), message(), tool_start("c1"), tool_start("c2"))
    assert box.ends_with_tool_start
    assert [e.subject for e in box.take_back_tool_starts()] == ["c2", "c1"]
    assert box.take_back_tool_starts() == []
    assert not box.ends_with_tool_start
    assert [e.seq for e in number(box, token())] == [5]
    assert [e.type for e in box.freeze(7.0, NOW_MS).events] == ["tool_start", "message", "token"]


def test_a_tool_start_in_flight_is_not_taken_back() -> None:
    box, _ = outbox()
    number(box, tool_start())
    box.freeze(7.0, NOW_MS)
    assert box.ends_with_tool_start
    assert box.take_back_tool_starts() == []


def test_what_is_uncommitted_is_weighed_wherever_it_is() -> None:
    box, view = outbox()
    assert (box.empty, box.count, box.size_bytes, box.due_at()) == (True, 0, 0, None)
    weight = sum(e.size_bytes for e in number(box, token(), tool_start()))
    record = box.freeze(7.0, NOW_MS)
    assert (box.count, box.size_bytes, box.due_at()) == (2, weight, None)
    box.thaw()
    assert (box.count, box.size_bytes, box.due_at()) == (2, weight, 7.0)
    box.take_back_tool_starts()
    assert box.due_at() == 7.5, "nothing structural waits any more"
    box.freeze(7.5, NOW_MS)
    view.apply(record)
    box.forget_frozen()
    assert (box.empty, box.count, box.size_bytes, box.due_at()) == (True, 0, 0, None)


def test_an_event_without_any_text_is_flushed_too() -> None:
    box, _ = outbox()
    draft = token()
    number(box, type(draft)("token", "", structural=False))
    assert box.due_at() == 7.5


def test_what_does_not_fit_into_a_record_waits_from_then_on() -> None:
    box, view = outbox()
    number(box, *[token() for _ in range(RECORD_LIMIT_EVENTS + 1)])
    view.apply(box.freeze(7.5, NOW_MS))
    box.forget_frozen()
    assert box.count == 1
    assert box.due_at() == 8.0
