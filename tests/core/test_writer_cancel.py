"""The writer and a cancel: met at its slot, found by a poll, or asked of it directly."""

from __future__ import annotations

import json

import pytest

from edge.core import effects as fx
from edge.core import inputs as ins
from edge.core.log import Cancel
from tests.core.samples import (
    done,
    message,
    progress,
    start,
    suspended,
    token,
    tool_end,
    tool_start,
)
from tests.core.writer_bench import Bench, owned_turn


def outcomes(bench: Bench) -> dict[str, str]:
    """Return call -> outcome, as the log has it."""
    bodies = [json.loads(e.data) for e in bench.log.events if e.type == "tool_end"]
    return {body["call_id"]: body["outcome"] for body in bodies}


def last(bench: Bench) -> dict[str, str]:
    body = json.loads(bench.log.events[-1].data)
    assert isinstance(body, dict)
    return body


@pytest.mark.proves("P-HTTP-11", "P-LOG-9")
def test_a_start_that_meets_a_cancel_at_its_slot_never_enters_the_log() -> None:
    bench = Bench()
    bench.receive(token(), message(), tool_start("c1"), tool_start("c2"))
    bench.receive(progress("c1"), tool_end("c1"), token("b", "m2"), message("b", "m2"))
    bench.cancel_elsewhere()
    bench.land()
    assert bench.turn.cancelled
    assert bench.all(fx.StopRuntime) == [fx.StopRuntime(1)]
    assert bench.batch == ["token", "message", "token", "message"]
    bench.receive(tool_end("c2", "not_executed"), done("cancelled"))
    assert bench.settle_and_close() == fx.Close()
    types = ["turn_start", "token", "message", "token", "message", "done"]
    assert bench.log.types == bench_types(bench) == types
    assert bench.all(fx.Ack) == []


def bench_types(bench: Bench) -> list[str]:
    """Return what viewers have had of this turn."""
    return ["turn_start", *bench.types_shown]


def test_the_events_that_stay_keep_their_seqs_and_the_freed_ones_are_given_again() -> None:
    bench = Bench()
    bench.receive(token(), message(), tool_start())
    before = bench.in_flight
    bench.cancel_elsewhere()
    bench.land()
    after = bench.in_flight
    assert before is not None
    assert after is not None
    assert after.events == before.events[:2]  # type: ignore[union-attr]
    assert after.slot == before.slot + 1
    bench.land()
    bench.receive(message("b", "m2"))
    assert bench.in_flight is not None
    assert bench.in_flight.last_seq == 4


@pytest.mark.proves("P-HTTP-11")
def test_no_start_that_comes_after_a_cancel_enters_the_log() -> None:
    bench = Bench()
    bench.cancel_elsewhere()
    bench.wait(1.0)
    bench.answer_poll()
    assert bench.turn.cancelled
    bench.receive(tool_start("c1"), progress("c1"), tool_end("c1", "not_executed"))
    bench.receive(message(), done("cancelled"))
    bench.settle_and_close()
    assert bench.log.types == ["turn_start", "message", "done"]


@pytest.mark.proves("S55", "P-EVT-6")
def test_a_start_that_is_in_the_log_stays_and_gets_its_end() -> None:
    bench = Bench()
    bench.receive(token("half"), tool_start("c1"))
    bench.land()
    bench.cancel_elsewhere()
    bench.wait(1.0)
    bench.answer_poll()
    bench.receive(tool_end("c1"), done("cancelled"))
    bench.settle_and_close()
    assert bench.log.types == ["turn_start", "token", "tool_start", "tool_end", "message", "done"]
    assert outcomes(bench) == {"c1": "succeeded"}
    assert '"text":"half"' in bench.log.events[4].data


@pytest.mark.proves("P-LOG-8")
def test_a_cancel_asked_of_the_owner_is_appended_by_it_and_only_once() -> None:
    bench = Bench()
    bench.feed(ins.CancelAsked())
    bench.feed(ins.CancelAsked())
    assert isinstance(bench.in_flight, Cancel)
    assert not bench.turn.cancelled, "it is not known to be durable yet"
    assert bench.all(fx.StopRuntime) == []
    bench.land()
    assert bench.turn.cancelled
    assert bench.all(fx.StopRuntime) == [fx.StopRuntime(1)]
    bench.feed(ins.CancelAsked())
    assert bench.in_flight is None


@pytest.mark.proves("P-LOG-8")
def test_a_cancel_that_meets_a_cancel_of_its_turn_is_not_appended() -> None:
    bench = Bench()
    bench.feed(ins.CancelAsked())
    bench.cancel_elsewhere()
    bench.land()
    assert bench.turn.cancelled
    assert bench.in_flight is None


@pytest.mark.proves("P-LOG-8")
@pytest.mark.parametrize("other", ["cancel", "resolve"])
def test_a_cancel_that_meets_something_else_goes_on_at_the_next_slot(other: str) -> None:
    bench = Bench()
    bench.feed(ins.CancelAsked())
    bench.log.cancel("t0") if other == "cancel" else bench.log.resolve()
    bench.land()
    assert not bench.turn.cancelled
    assert isinstance(bench.in_flight, Cancel)
    assert bench.in_flight.slot == 4
    bench.land()
    assert bench.turn.cancelled


def test_a_cancel_waits_for_the_append_in_flight_and_goes_before_what_is_behind_it() -> None:
    bench = Bench()
    bench.receive(tool_start("c1"))
    bench.receive(tool_start("c2"), token())
    bench.feed(ins.CancelAsked())
    bench.land()
    assert isinstance(bench.in_flight, Cancel)
    bench.land_all()
    assert "c2" not in bench.turn.calls
    bench.receive(done("cancelled"))
    bench.settle_and_close()
    assert list(outcomes(bench)) == ["c1"]


def test_a_turn_that_ends_before_the_cancel_is_done() -> None:
    bench = Bench()
    bench.receive(done())
    bench.feed(ins.CancelAsked())
    assert bench.settle_and_close() == fx.Close()
    assert not any(isinstance(record, Cancel) for record in bench.log.records)
    assert not bench.turn.cancelled


def test_an_end_that_meets_a_cancel_ends_the_turn_all_the_same() -> None:
    bench = Bench()
    bench.receive(message(), done())
    bench.cancel_elsewhere()
    bench.land()
    assert bench.batch == ["message", "done"]
    bench.settle_and_close()
    assert last(bench)["outcome"] == "completed"
    assert bench.all(fx.StopRuntime) == []


@pytest.mark.proves("S49", "P-EVT-4", "P-EVT-5")
def test_a_runtime_that_never_answers_a_cancel_is_dropped_and_the_turn_ends_cancelled() -> None:
    bench = Bench()
    bench.receive(token("half"), tool_start("c1"))
    bench.land()
    bench.feed(ins.CancelAsked())
    bench.land()
    patience = bench.settings.cancel_grace_seconds + bench.settings.cancel_patience_seconds
    bench.wait(patience - 0.1)
    assert bench.all(fx.DropStream) == []
    bench.settle_and_close()
    assert bench.all(fx.DropStream)
    assert bench.log.types[2:] == ["tool_start", "message", "tool_end", "done"]
    assert outcomes(bench) == {"c1": "unknown"}
    assert last(bench)["outcome"] == "cancelled"


@pytest.mark.parametrize("how", ["a clean end", "a crash", "gone", "superseded"])
def test_an_attempt_that_ends_without_a_word_after_a_cancel_ends_the_turn_cancelled(
    how: str,
) -> None:
    bench = Bench()
    bench.feed(ins.CancelAsked())
    bench.land()
    if how in ("gone", "superseded"):
        bench.feed(ins.AttemptLost(1, superseded=how == "superseded"))
    else:
        bench.end_stream("runtime_error" if how == "a crash" else "", retryable=False)
    bench.settle_and_close()
    assert last(bench)["outcome"] == "cancelled"
    assert len(bench.all(fx.Begin)) == 1


def test_a_cancel_between_two_attempts_ends_the_turn_without_another() -> None:
    bench = Bench()
    bench.end_stream("runtime_unavailable")
    bench.feed(ins.CancelAsked())
    bench.land()
    assert bench.settle_and_close() == fx.Close()
    assert bench.log.types == ["turn_start", "done"]
    assert bench.all(fx.StopRuntime) == []


def test_a_cancel_that_meets_the_start_of_an_attempt_ends_it_before_it_begins() -> None:
    bench = Bench()
    bench.receive(message())
    bench.land()
    bench.end_stream("runtime_unavailable")
    assert bench.batch == ["turn_start"]
    bench.cancel_elsewhere()
    bench.land_all()
    assert bench.settle_and_close() == fx.Close()
    assert bench.log.types == ["turn_start", "message", "turn_start", "done"]
    assert len(bench.all(fx.Begin)) == 1


def test_a_taker_ends_a_turn_that_was_cancelled_before_it_came() -> None:
    log = owned_turn(token("half"), tool_start("c1"))
    log.cancel()
    bench = Bench(log, fresh=False)
    bench.settle_and_close()
    assert bench.all(fx.Begin) == []
    assert bench.log.types == ["turn_start", "token", "tool_start", "message", "tool_end", "done"]
    assert outcomes(bench) == {"c1": "unknown"}


@pytest.mark.proves("S47")
def test_a_parked_turn_that_is_cancelled_ends_and_what_waited_did_not_run() -> None:
    log = owned_turn(tool_start("c1"), suspended("input_required", "c1"))
    log.cancel()
    bench = Bench(log, fresh=False)
    bench.settle_and_close()
    assert outcomes(bench) == {"c1": "not_executed"}
    assert last(bench)["outcome"] == "cancelled"


def test_a_cancel_asked_while_the_suspension_is_committed_ends_the_turn() -> None:
    bench = Bench()
    bench.receive(tool_start("c1", executor="client"), suspended("client_tool", "c1"))
    bench.land()
    bench.feed(ins.CancelAsked())
    bench.settle_and_close()
    assert outcomes(bench) == {"c1": "not_executed"}
    assert last(bench)["outcome"] == "cancelled"


def test_a_new_turn_is_not_hit_by_the_cancel_of_the_last_one() -> None:
    log = owned_turn(done())
    log.write(start(turn_id="t2"))
    bench = Bench(log)
    bench.receive(message())
    bench.log.cancel("t1")
    bench.land_all()
    assert not bench.turn.cancelled
    assert "message" in bench.log.types


def test_an_attempt_that_cannot_be_told_to_stop_is_heard_out_for_a_moment() -> None:
    bench = Bench()
    bench.receive(tool_start())
    bench.land_all()
    bench.feed(ins.CancelAsked())
    bench.land_all()
    bench.feed(ins.AttemptLost(1))
    assert bench.all(fx.DropStream) == []
    bench.receive(tool_end(), done())
    bench.land_all()
    assert bench.log.types[-2:] == ["tool_end", "done"]
    assert '"outcome":"unknown"' not in bench.log.events[-2].data
