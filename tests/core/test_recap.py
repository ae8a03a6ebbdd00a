"""The recap: one turn out of a session, and what it has come to."""

from __future__ import annotations

import pytest

from edge.core.cursor import START, Cursor
from edge.core.recap import Recap, recap_of
from edge.core.session import Session
from tests.core.log_builder import LogBuilder
from tests.core.samples import done, message, start, suspended, token, tool_end, tool_start


def kinds(recap: Recap | None) -> list[str]:
    assert recap is not None
    return [event.type for event in recap.events]


def test_a_session_without_a_turn_has_none() -> None:
    assert recap_of(Session()) is None
    assert recap_of(Session(), "t1") is None


def test_a_recap_of_the_newest_turn_begins_right_before_it_and_leaves_deltas_out() -> None:
    log = LogBuilder()
    log.acquire()
    log.write(start(), message(), done())
    log.write(start(turn_id="t2"), token())
    recap = recap_of(log.session())
    assert kinds(recap) == ["turn_start"]
    assert recap is not None
    assert (recap.turn_id, recap.before) == ("t2", Cursor(1, 3))
    assert (recap.finished, recap.waiting) == (False, ())


def test_an_earlier_turn_can_be_asked_for_and_is_over() -> None:
    log = LogBuilder()
    log.acquire()
    log.write(start(), message(), start(2), done())
    log.write(start(turn_id="t2"))
    recap = recap_of(log.session(), "t1")
    assert kinds(recap) == ["turn_start", "message", "turn_start", "done"]
    assert recap is not None
    assert (recap.before, recap.finished, recap.waiting) == (START, True, ())
    assert recap_of(log.session(), "t3") is None


@pytest.mark.parametrize(
    ("reason", "waiting"), [("input_required", ("c1", "c2")), ("checkpoint", ())]
)
def test_only_what_a_person_or_a_page_must_decide_is_waiting(
    reason: str, waiting: tuple[str, ...]
) -> None:
    log = LogBuilder()
    log.acquire()
    log.write(start(), tool_start("c1"), tool_start("c2"), suspended(reason, "c1", "c2"))
    recap = recap_of(log.session())
    assert recap is not None
    assert recap.waiting == waiting
    assert (recap.suspension is not None) is bool(waiting)


def test_a_decided_call_does_not_wait_and_no_call_does_when_the_turn_goes_on() -> None:
    log = LogBuilder()
    log.acquire()
    log.write(start(), tool_start("c1"), tool_start("c2"))
    log.write(suspended("input_required", "c1", "c2"))
    log.resolve("c1")
    recap = recap_of(log.session())
    assert recap is not None
    assert recap.waiting == ("c2",)
    log.resolve("c2")
    log.write(start(2), tool_end("c1"), suspended("draining"))
    recap = recap_of(log.session())
    assert recap is not None
    assert recap.waiting == ()
    assert recap.suspension is not None
    assert recap.suspension.seq == 4


def test_of_two_waits_the_newer_one_counts() -> None:
    log = LogBuilder()
    log.acquire()
    log.write(start(), tool_start("c1"), suspended("input_required", "c1"))
    log.write(start(2), tool_end("c1"), tool_start("c2"), suspended("client_tool", "c2"))
    recap = recap_of(log.session())
    assert recap is not None and recap.suspension is not None
    assert recap.suspension.seq == 7
