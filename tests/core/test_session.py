"""A session: the fold of its log, the same for whoever folds it."""

from __future__ import annotations

import pytest

from edge.core.cursor import START, Cursor
from edge.core.errors import LogBroken
from edge.core.session import Session, cursor_at
from tests.core.log_builder import LogBuilder, folded
from tests.core.samples import DENIED, EXECUTE, TURN, done, message, start, suspended, token
from tests.core.samples import tool_start as call


def parked() -> LogBuilder:
    log = LogBuilder()
    log.acquire()
    log.write(start(), token(), call("c1", executor="client"), suspended("input_required", "c1"))
    return log


def test_a_session_is_busy_from_its_turns_start_to_its_end() -> None:
    log = LogBuilder()
    assert not log.session().busy
    log.acquire()
    assert not log.session().busy
    log.write(start(), token(), message())
    assert log.session().busy
    log.write(done())
    session = log.session()
    assert not session.busy
    assert session.finished_turns == {TURN}


def test_history_is_every_structural_event_and_no_delta() -> None:
    log = LogBuilder()
    log.acquire()
    log.write(start(), token(), message(), done())
    log.write(start(turn_id="t2"))
    types = [event.type for event in log.session().history]
    assert types == ["turn_start", "message", "done", "turn_start"]


def test_a_new_turn_starts_from_nothing_and_a_new_attempt_does_not() -> None:
    log = parked()
    log.write(start(2))
    turn = log.session().turn
    assert turn is not None
    assert (turn.turn_id, turn.attempt, set(turn.calls)) == (TURN, 2, {"c1"})
    log.write(start(turn_id="t2"))
    turn = log.session().turn
    assert turn is not None
    assert (turn.turn_id, turn.attempt, turn.calls) == ("t2", 1, {})


@pytest.mark.parametrize("about", ["t0", TURN])
def test_a_cancel_hits_the_turn_it_names_and_no_other(about: str) -> None:
    log = parked()
    log.cancel(about)
    turn = log.session().turn
    assert turn is not None
    assert turn.cancelled == (about == TURN)


def test_a_cancel_after_the_end_changes_nothing() -> None:
    log = LogBuilder()
    log.acquire()
    log.write(start(), done())
    log.cancel()
    turn = log.session().turn
    assert turn is not None
    assert not turn.cancelled


def test_the_first_decision_about_a_call_that_waits_counts() -> None:
    log = parked()
    log.resolve("c1", EXECUTE)
    log.resolve("c1", DENIED)
    log.resolve("c9", DENIED)
    turn = log.session().turn
    assert turn is not None
    assert turn.decisions == {"c1": EXECUTE}
    assert turn.decided


def test_a_log_that_begins_inside_a_turn_has_no_turn_to_speak_of() -> None:
    log = parked()
    session = folded([log.records[1]])
    assert session.busy
    log.write(token())
    tail = folded(log.records[2:])
    assert tail.turn is None
    assert not tail.busy
    log.cancel()
    tail.apply(log.records[3])
    log.write(done())
    tail.apply(log.records[4])
    assert tail.finished_turns == set()


def test_a_broken_log_is_told_and_changes_no_turn() -> None:
    log = parked()
    session = log.session()
    with pytest.raises(LogBroken):
        session.apply(log.records[0])
    assert session.busy


def test_the_owner_that_folds_as_it_numbers_knows_what_a_reader_knows() -> None:
    log = parked()
    owner = Session()
    for record in log.records:
        owner.view.apply(record)
    for event in log.events:
        owner.apply_event(event)
    assert owner == log.session()


@pytest.mark.proves("S19", "T37")
def test_a_position_is_named_by_the_epoch_that_numbered_it() -> None:
    starts = ((2, 4), (3, 4), (4, 9))
    assert cursor_at(starts, 0) == START
    assert cursor_at(starts, 3) == Cursor(0, 3), "older than every epoch that is named"
    assert cursor_at(starts, 4) == Cursor(3, 4), "epoch 2 wrote nothing"
    assert cursor_at(starts, 8) == Cursor(3, 8)
    assert cursor_at(starts, 9) == Cursor(4, 9)
