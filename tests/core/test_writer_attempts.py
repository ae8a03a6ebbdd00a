"""The writer's attempts: durable before they are begun, budgeted by progress, resumed or ended."""

from __future__ import annotations

import json

import pytest

from edge.core import effects as fx
from edge.core import inputs as ins
from edge.core.event import Draft
from edge.core.patience import WriterSettings
from tests.core.samples import (
    DENIED,
    EXECUTE,
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


def begun(bench: Bench) -> list[int]:
    return [begin.attempt for begin in bench.all(fx.Begin)]


def error(bench: Bench) -> dict[str, object]:
    """Return the body of the terminal error."""
    event = bench.log.events[-1]
    assert event.type == "error"
    body = json.loads(event.data)
    assert isinstance(body, dict)
    return body


@pytest.mark.proves("P-RUN-3")
def test_an_attempt_begins_only_once_it_is_durable() -> None:
    bench = Bench(owned_turn(token()), fresh=False)
    assert bench.batch == ["turn_start"]
    assert begun(bench) == []
    bench.wait(5.0)
    assert begun(bench) == []
    bench.land()
    assert begun(bench) == [2]


@pytest.mark.proves("S57", "T27", "P-RUN-2")
@pytest.mark.parametrize("reason", ["", "runtime_unavailable"])
def test_a_stream_that_ends_without_a_last_word_is_followed_by_the_next_attempt(
    reason: str,
) -> None:
    bench = Bench()
    bench.receive(token(), message())
    bench.land()
    bench.end_stream(reason)
    bench.land()
    assert begun(bench) == [1, 2]
    assert bench.log.types[-1] == "turn_start"


def test_tokens_of_a_crashed_attempt_are_committed_before_the_next_one_withdraws_them() -> None:
    bench = Bench()
    bench.receive(token(), token())
    bench.end_stream("runtime_unavailable")
    bench.wait(1.0)
    bench.land_all()
    assert bench.log.types == ["turn_start", "token", "token", "turn_start"]


@pytest.mark.proves("S59", "T26")
def test_an_attempt_that_may_not_be_repeated_ends_the_turn_with_its_reason() -> None:
    bench = Bench()
    bench.receive(token("half"), tool_start())
    bench.land()
    bench.end_stream("runtime_auth", retryable=False)
    bench.settle_and_close()
    assert bench.log.types[-3:] == ["message", "tool_end", "error"]
    assert error(bench) == {"turn_id": "t1", "code": "runtime_auth", "retryable": False}


@pytest.mark.proves("S46", "P-RUN-10")
def test_ten_attempts_without_progress_end_the_turn() -> None:
    bench = Bench()
    for attempt in range(1, 11):
        assert begun(bench)[-1] == attempt
        bench.receive(token())
        bench.end_stream("runtime_unavailable")
        bench.wait(5.0)
        bench.land_all()
    bench.settle_and_close()
    assert begun(bench) == list(range(1, 11))
    assert error(bench) == {"turn_id": "t1", "code": "runtime_unavailable", "retryable": True}


@pytest.mark.proves("S46", "P-RUN-10")
def test_any_number_of_interruptions_is_survived_while_there_is_progress() -> None:
    bench = Bench()
    for number in range(40):
        bench.receive(message(message_id=f"m{number}"))
        bench.end_stream("runtime_unavailable")
        bench.land_all()
    assert begun(bench) == list(range(1, 42))


def test_attempts_without_progress_are_made_ever_more_slowly() -> None:
    bench = Bench()
    pauses = []
    for _ in range(9):
        bench.end_stream("runtime_unavailable")
        ended_at = bench.seconds
        while bench.in_flight is None:
            bench.wait(0.01)
        pauses.append(bench.seconds - ended_at)
        bench.land()
    base, limit = bench.settings.backoff_base_seconds, bench.settings.backoff_limit_seconds
    for number, pause in enumerate(pauses):
        full = min(base * 2**number, limit)
        assert full / 2 - 0.02 <= pause <= full + 0.02


@pytest.mark.proves("P-EVT-3")
@pytest.mark.parametrize("reason", ["checkpoint", "draining"])
def test_a_runtime_that_suspends_between_tools_is_resumed_at_once(reason: str) -> None:
    bench = Bench()
    bench.receive(message(), suspended(reason))
    bench.land_all()
    assert begun(bench) == [1, 2]
    assert bench.closed is None


@pytest.mark.proves("S46")
def test_a_runtime_that_only_ever_suspends_is_neither_called_for_ever_nor_at_once() -> None:
    bench = Bench()
    for _ in range(30):
        bench.receive(suspended("draining"))
        bench.land_all()
    assert len(begun(bench)) < 30


@pytest.mark.proves("S47")
@pytest.mark.parametrize("reason", ["input_required", "client_tool"])
def test_a_turn_that_waits_for_a_person_is_given_up_by_its_writer(reason: str) -> None:
    bench = Bench()
    bench.receive(tool_start("c1", executor="client"), suspended(reason, "c1"))
    assert bench.settle_and_close() == fx.Close(released=True)
    assert bench.log.types[-1] == "suspended"
    assert bench.types_shown[-1] == "suspended"


@pytest.mark.proves("S47")
@pytest.mark.parametrize("decision", [EXECUTE, DENIED])
def test_a_decided_turn_goes_on_with_the_decision(decision: str) -> None:
    log = owned_turn(tool_start(), suspended("input_required", "c1"))
    log.resolve("c1", decision)
    bench = Bench(log, fresh=False)
    bench.land()
    assert bench.all(fx.Begin) == [fx.Begin(2, (("c1", decision),))]


def decided_early(decision: str) -> Bench:
    """A decision stands where the suspension that it is about wanted to go."""
    bench = Bench()
    bench.receive(tool_start("c1"), suspended("input_required", "c1"))
    bench.land()
    bench.log.resolve("c1", decision)
    bench.land_all()
    bench.wait(0.0)
    bench.land_all()
    return bench


def test_a_turn_that_is_decided_while_its_suspension_is_committed_goes_on_by_itself() -> None:
    bench = decided_early(EXECUTE)
    assert begun(bench) == [1, 2]
    assert dict(bench.all(fx.Begin)[-1].resolutions) == {"c1": EXECUTE}


def test_a_denial_outweighs_a_gate_that_nobody_opened() -> None:
    bench = decided_early(DENIED)
    assert dict(bench.all(fx.Begin)[-1].resolutions) == {"c1": DENIED}


def test_a_taker_of_a_parked_turn_has_nothing_to_do() -> None:
    bench = Bench(owned_turn(tool_start(), suspended("input_required", "c1")), fresh=False)
    assert bench.closed == fx.Close(released=True)
    assert bench.log.types[-1] == "suspended"


@pytest.mark.proves("S40", "P-RUN-7")
def test_a_taker_gives_no_grant_that_an_earlier_attempt_may_have_used() -> None:
    log = owned_turn(tool_start(), suspended("input_required", "c1"))
    log.resolve()
    log.write(start(2))
    bench = Bench(log, fresh=False)
    bench.land()
    assert bench.all(fx.Begin) == [fx.Begin(3, ())]


@pytest.mark.parametrize("superseded", [False, True])
def test_an_attempt_that_the_runtime_does_not_know_is_followed_by_the_next(
    *, superseded: bool
) -> None:
    bench = Bench()
    bench.receive(message())
    bench.land()
    bench.feed(ins.AttemptLost(1, superseded=superseded))
    assert bench.all(fx.DropStream)
    bench.wait(0.3)
    bench.land_all()
    assert begun(bench) == [1, 2]


@pytest.mark.proves("S41")
def test_an_owner_that_is_superseded_looks_for_a_newer_one_before_it_goes_on() -> None:
    bench = Bench()
    bench.receive(message())
    bench.land()
    bench.taken_over()
    bench.feed(ins.AttemptLost(1, superseded=True))
    assert bench.in_flight is None
    bench.answer_poll()
    assert bench.closed == fx.Close(fenced=True)


@pytest.mark.parametrize(
    "late",
    [
        ins.AttemptLost(1),
        ins.AttemptLost(1, superseded=True),
        ins.StreamEnded(1, "runtime_error", retryable=False),
        ins.Received(1, [done()]),
        ins.Received(2, []),
    ],
    ids=repr,
)
def test_what_an_earlier_attempt_still_says_is_not_heard(late: ins.Input) -> None:
    bench = Bench()
    bench.receive(message())
    bench.end_stream()
    bench.land_all()
    assert begun(bench) == [1, 2]
    heard = len(bench.effects)
    bench.feed(late)
    assert bench.effects[heard:] == []
    assert bench.writer.uncommitted_events == 0


VIOLATIONS: dict[str, tuple[str, list[Draft]]] = {
    "a call that starts twice": ("runtime_protocol_error", [tool_start("c1"), tool_start("c1")]),
    "an end without a start": ("runtime_protocol_error", [tool_end("c9")]),
    "a second end": ("runtime_protocol_error", [tool_start(), tool_end(), tool_end()]),
    "too large an event": ("event_too_large", [progress(text="x" * 2_000)]),
}


@pytest.mark.proves("S78")
@pytest.mark.parametrize("case", VIOLATIONS)
def test_a_runtime_that_breaks_the_protocol_is_dropped_and_the_turn_ends_by_name(case: str) -> None:
    code, drafts = VIOLATIONS[case]
    bench = Bench(settings=WriterSettings(event_limit_bytes=1_000))
    bench.receive(token("half"))
    bench.receive(*drafts, message("never", "m9"))
    bench.settle_and_close()
    assert bench.all(fx.DropStream)
    assert error(bench)["code"] == code
    assert not any(event.subject == "m9" for event in bench.log.events)
    assert begun(bench) == [1]
    starts = [e.subject for e in bench.log.events if e.type == "tool_start"]
    ends = [e.subject for e in bench.log.events if e.type == "tool_end"]
    assert starts == ends


def test_a_call_of_an_earlier_attempt_may_end_and_may_not_start_again() -> None:
    bench = Bench(owned_turn(tool_start("c1"), tool_start("c2")), fresh=False)
    bench.land()
    bench.receive(tool_end("c1", "unknown"), tool_start("c2"))
    bench.settle_and_close()
    assert bench.log.types[-4:-2] == ["turn_start", "tool_end"]
    assert error(bench)["code"] == "runtime_protocol_error"


def test_a_writer_that_waits_for_an_append_before_its_next_attempt_does_not_spin() -> None:
    bench = Bench()
    bench.receive(tool_start())
    bench.end_stream("runtime_unavailable")
    bench.feed(ins.Tick())
    wake_at = bench.writer.wake_at()
    assert wake_at is not None
    assert wake_at > bench.seconds
