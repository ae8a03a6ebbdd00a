"""The writer's ways out: fenced, refused, or drained, in whatever stage that finds it."""

from __future__ import annotations

import pytest

from edge.core import effects as fx
from edge.core import inputs as ins
from edge.core.event import Draft
from tests.core.samples import done, message, suspended, token, tool_end, tool_start
from tests.core.writer_bench import Bench, owned_turn

RELEASED = fx.Close(released=True)
FENCED = fx.Close(fenced=True)


def drain(bench: Bench, seconds: float = 5.0) -> None:
    bench.feed(ins.DrainAsked(bench.seconds + seconds))


def last_kinds(bench: Bench, count: int = 2) -> list[type[fx.Effect]]:
    return [type(effect) for effect in bench.effects[-count:]]


@pytest.mark.proves("S41", "P-LOG-12")
def test_an_append_that_meets_a_newer_owner_ends_it_without_a_word() -> None:
    bench = Bench()
    bench.receive(token(), message())
    bench.receive(token("b", "m2"))
    bench.taken_over()
    bench.land()
    assert bench.closed == FENCED
    assert last_kinds(bench) == [fx.DropStream, fx.Close]
    assert bench.types_shown == ["token"]
    assert bench.writer.wake_at() is None


@pytest.mark.proves("S41", "S42", "P-LOG-12")
def test_a_poll_that_finds_a_newer_owner_ends_it_without_a_word() -> None:
    bench = Bench()
    bench.wait(1.0)
    bench.receive(token())
    bench.taken_over()
    bench.answer_poll()
    assert bench.closed == FENCED
    assert bench.in_flight is None


def test_a_poll_that_finds_a_newer_owner_while_an_append_is_in_flight_ends_it_too() -> None:
    bench = Bench()
    bench.wait(1.0)
    bench.receive(message())
    bench.taken_over()
    bench.answer_poll()
    assert bench.closed == FENCED
    assert bench.types_shown == []


def test_a_poll_that_finds_a_cancel_while_an_append_is_in_flight_leaves_it_to_the_append() -> None:
    bench = Bench()
    bench.wait(1.0)
    bench.receive(tool_start())
    bench.cancel_elsewhere()
    bench.answer_poll()
    assert not bench.turn.cancelled
    bench.land()
    assert bench.turn.cancelled
    assert "tool_start" not in bench.log.types


def test_a_cancel_and_a_take_over_at_one_slot_are_both_obeyed_in_their_order() -> None:
    bench = Bench()
    bench.receive(tool_start())
    bench.cancel_elsewhere()
    bench.taken_over()
    bench.land()
    assert bench.closed == FENCED
    assert bench.all(fx.Ack) == []
    assert bench.in_flight is None


@pytest.mark.parametrize(
    "late",
    [
        ins.Tick(),
        ins.Received(1, [token(), done()]),
        ins.StreamEnded(1),
        ins.Polled(2_000.0, []),
        ins.Met([]),
        ins.Committed(2_000.0),
        ins.CancelAsked(),
        ins.DrainAsked(2_000.0),
        ins.AttemptLost(1),
        ins.Refused(),
    ],
    ids=repr,
)
def test_a_closed_writer_does_nothing_whatever_happens(late: ins.Input) -> None:
    bench = Bench()
    bench.receive(message())
    bench.taken_over()
    bench.land()
    assert bench.closed == FENCED
    assert bench.feed(late) == []


def test_a_store_that_will_never_take_a_record_ends_its_writer() -> None:
    bench = Bench()
    bench.receive(message())
    bench.feed(ins.Refused())
    assert bench.closed == FENCED
    assert bench.types_shown == []


def test_a_draining_owner_lets_go_between_tools_after_committing_what_it_has() -> None:
    bench = Bench()
    bench.receive(token("half"))
    drain(bench)
    assert fx.DropStream() in bench.effects
    bench.receive(token("never"))
    assert bench.closed is None
    assert bench.settle_and_close() == RELEASED
    assert bench.log.types == ["turn_start", "token"]


@pytest.mark.proves("S35")
def test_a_draining_owner_waits_for_the_tool_that_runs_and_commits_its_result() -> None:
    bench = Bench()
    bench.receive(tool_start())
    bench.land()
    drain(bench)
    bench.wait(3.0)
    assert bench.closed is None
    assert fx.DropStream() not in bench.effects
    bench.receive(tool_end())
    assert bench.settle_and_close() == RELEASED
    assert bench.log.types[-1] == "tool_end"
    assert len(bench.all(fx.Begin)) == 1


@pytest.mark.parametrize(
    "waiting", [tool_start(executor="client"), tool_start(executor="provider")], ids=repr
)
def test_a_draining_owner_does_not_wait_for_calls_that_run_elsewhere(waiting: Draft) -> None:
    bench = Bench()
    bench.receive(waiting)
    bench.land()
    drain(bench)
    assert bench.settle_and_close(1.0) == RELEASED


def test_a_draining_owner_opens_no_gate_behind_the_one_that_it_leaves_by() -> None:
    bench = Bench()
    bench.receive(tool_start())
    drain(bench)
    assert bench.settle_and_close() == RELEASED
    assert bench.all(fx.Ack) == []


def test_a_tool_that_outlasts_the_deadline_is_left_to_the_next_owner() -> None:
    bench = Bench()
    bench.receive(tool_start())
    bench.land()
    drain(bench)
    bench.wait(5.0)
    assert bench.closed == RELEASED


@pytest.mark.parametrize("seconds", [5.0, 0.0])
def test_a_drain_that_the_journal_does_not_answer_ends_at_its_deadline(seconds: float) -> None:
    bench = Bench()
    bench.receive(message(), done())
    drain(bench, seconds)
    bench.wait(seconds)
    assert bench.closed is not None
    assert not bench.closed.fenced
    assert bench.types_shown == [], "what nobody knows to be committed is not shown"


def test_a_drain_before_an_attempt_is_durable_begins_none() -> None:
    bench = Bench(owned_turn(token()), fresh=False)
    drain(bench)
    bench.land()
    assert bench.closed == RELEASED
    assert bench.all(fx.Begin) == []


def test_a_drain_between_two_attempts_starts_none() -> None:
    bench = Bench()
    bench.end_stream("runtime_unavailable")
    drain(bench)
    assert bench.closed == RELEASED
    assert bench.log.types == ["turn_start"]


def test_a_drain_while_the_end_is_committed_is_no_hand_over() -> None:
    bench = Bench()
    bench.receive(message(), done())
    drain(bench)
    bench.land()
    assert bench.closed == fx.Close(released=False)


def test_a_drain_while_a_suspension_is_committed_hands_it_over() -> None:
    bench = Bench()
    bench.receive(tool_start("c1"), suspended("checkpoint", "c1"))
    drain(bench)
    bench.land_all()
    assert bench.closed == RELEASED
    assert bench.log.types[-1] == "suspended"


def test_a_drain_during_a_cancel_leaves_the_end_to_the_next_owner() -> None:
    bench = Bench()
    bench.feed(ins.CancelAsked())
    drain(bench)
    bench.land()
    assert bench.turn.cancelled, "the cancel is durable before the hand-over"
    assert bench.settle_and_close() == RELEASED


def test_a_drain_that_meets_a_newer_owner_is_no_hand_over() -> None:
    bench = Bench()
    bench.receive(message())
    drain(bench)
    bench.taken_over()
    bench.land()
    assert bench.closed == FENCED


def test_a_draining_owner_tells_the_next_one_which_gate_stayed_shut() -> None:
    bench = Bench()
    bench.receive(tool_start())
    drain(bench)
    bench.land_all()
    assert bench.log.types[-2:] == ["tool_start", "suspended"]
    assert bench.all(fx.Ack) == []
    assert bench.turn.resolutions() == (("c1", '{"execute":true}'),)
    assert bench.closed == RELEASED


def test_a_draining_owner_opens_no_gate_while_it_waits_for_a_tool() -> None:
    bench = Bench()
    bench.receive(tool_start())
    bench.land_all()
    drain(bench)
    bench.receive(tool_start("c2"))
    bench.land_all()
    bench.receive(tool_end())
    bench.land_all()
    assert len(bench.all(fx.Ack)) == 1
    assert bench.log.types[-3:] == ["tool_start", "tool_end", "suspended"]
    assert bench.closed == RELEASED
