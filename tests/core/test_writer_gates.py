"""The writer's gates: a tool starts only behind its own durable, visible start."""

from __future__ import annotations

import pytest

from edge.core import effects as fx
from edge.core import inputs as ins
from tests.core.samples import message, progress, suspended, token, tool_end, tool_start
from tests.core.writer_bench import Bench


def acks(bench: Bench) -> list[tuple[int, int]]:
    return [(ack.attempt, ack.index) for ack in bench.all(fx.Ack)]


@pytest.mark.proves("P-RUN-4")
def test_a_gate_opens_once_its_start_is_committed_and_shown() -> None:
    bench = Bench()
    bench.receive(token(), tool_start())
    assert acks(bench) == []
    assert bench.types_shown == ["token"]
    effects = bench.land()
    kinds = [type(effect) for effect in effects]
    assert kinds.index(fx.Show) < kinds.index(fx.Ack)
    assert acks(bench) == [(1, 2)]
    bench.wait(30.0)
    assert acks(bench) == [(1, 2)], "and is opened once"


def test_starts_that_are_committed_together_are_acknowledged_together() -> None:
    bench = Bench()
    bench.receive(tool_start("c1"), tool_start("c2"), tool_start("c3"))
    bench.land()
    assert acks(bench) == [(1, 3)]


def test_a_start_behind_the_one_in_flight_waits_for_its_own_commit() -> None:
    bench = Bench()
    bench.receive(tool_start("c1"))
    bench.receive(tool_start("c2"))
    bench.land()
    assert acks(bench) == [(1, 1)]
    bench.land()
    assert acks(bench) == [(1, 1), (1, 2)]


@pytest.mark.parametrize("executor", ["runtime", "client", "provider"])
def test_a_call_without_a_gate_is_not_acknowledged(executor: str) -> None:
    bench = Bench()
    bench.receive(tool_start(gated=False, executor=executor))
    bench.land()
    assert bench.types_shown == ["tool_start"]
    assert acks(bench) == []


def test_nothing_is_numbered_behind_an_uncommitted_start_but_another() -> None:
    bench = Bench()
    bench.receive(tool_start("c1"), tool_start("c2"), token(), progress("c1"))
    assert bench.batch == ["tool_start", "tool_start"]
    assert bench.types_shown == []
    bench.land()
    assert bench.types_shown == ["tool_start", "tool_start", "token", "tool_progress"]


@pytest.mark.proves("P-LOG-9")
def test_no_gate_opens_while_the_outcome_of_its_commit_is_unknown() -> None:
    bench = Bench()
    bench.receive(tool_start())
    bench.wait(60.0)
    assert acks(bench) == []
    bench.land()
    assert acks(bench) == [(1, 1)]


@pytest.mark.proves("P-HTTP-11")
def test_no_gate_opens_after_a_known_cancel() -> None:
    bench = Bench()
    bench.receive(message())
    bench.feed(ins.CancelAsked())
    bench.receive(tool_start("c1"))
    bench.land_all()
    assert bench.turn.cancelled
    assert acks(bench) == []
    assert "tool_start" not in bench.log.types


@pytest.mark.proves("S36")
def test_a_gate_that_nobody_opened_is_opened_by_the_next_attempt() -> None:
    bench = Bench()
    bench.receive(tool_start())
    bench.end_stream("runtime_unavailable")
    bench.land()
    assert bench.batch == ["turn_start"]
    bench.land()
    begin = bench.all(fx.Begin)[-1]
    assert (begin.attempt, list(begin.resolutions)) == (2, [("c1", '{"execute":true}')])
    assert acks(bench) == []


def test_a_gate_that_was_opened_is_not_opened_by_the_next_attempt() -> None:
    bench = Bench()
    bench.receive(tool_start())
    bench.land()
    bench.end_stream("runtime_unavailable")
    bench.land_all()
    begin = bench.all(fx.Begin)[-1]
    assert (begin.attempt, list(begin.resolutions)) == (2, [])


@pytest.mark.proves("P-RUN-5")
def test_a_runtime_that_suspends_at_the_gate_is_told_to_run_the_call_next_time() -> None:
    bench = Bench()
    bench.receive(tool_start(), suspended("checkpoint", "c1"))
    bench.land_all()
    begin = bench.all(fx.Begin)[-1]
    assert begin.attempt == 2
    assert dict(begin.resolutions) == {"c1": '{"execute":true}'}
    assert acks(bench) == []


def test_a_call_is_told_once_however_many_reasons_there_are_to_run_it() -> None:
    bench = Bench()
    bench.receive(tool_start(), suspended("checkpoint", "c1"))
    bench.land_all()
    assert list(bench.all(fx.Begin)[-1].resolutions) == [("c1", '{"execute":true}')]


def test_an_acknowledgement_belongs_to_its_attempt() -> None:
    bench = Bench()
    bench.receive(tool_start("c1"))
    bench.land()
    bench.receive(tool_end("c1"))
    bench.end_stream("runtime_unavailable")
    bench.land_all()
    bench.receive(token("again"), tool_start("c2"))
    bench.land()
    assert acks(bench) == [(1, 1), (2, 2)]
