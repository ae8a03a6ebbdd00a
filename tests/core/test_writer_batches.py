"""The writer's appends: what goes together, when it goes, and what it may show meanwhile."""

from __future__ import annotations

from itertools import pairwise

import pytest

from edge.core import effects as fx
from edge.core.event import Draft
from edge.core.log import Events
from tests.core.samples import done, message, progress, token, tool_end, tool_start
from tests.core.writer_bench import Bench


def running() -> Bench:
    """A bench whose first attempt has begun."""
    bench = Bench()
    assert [begin.attempt for begin in bench.all(fx.Begin)] == [1]
    return bench


@pytest.mark.proves("P-LOG-7")
def test_tokens_are_shown_at_once_and_committed_together_after_half_a_second() -> None:
    bench = running()
    bench.receive(token())
    bench.wait(0.3)
    bench.receive(token(), progress())
    assert bench.types_shown == ["token", "token", "tool_progress"]
    bench.wait(0.19)
    assert bench.in_flight is None
    bench.wait(0.01)
    assert bench.batch == ["token", "token", "tool_progress"]


@pytest.mark.proves("P-LOG-7")
@pytest.mark.parametrize("structural", [message(), done(), tool_start()], ids=lambda d: d.type)
def test_a_structural_event_goes_at_once_and_takes_the_tokens_before_it_along(
    structural: Draft,
) -> None:
    bench = running()
    bench.receive(token(), token())
    bench.receive(structural)
    assert bench.batch[:2] == ["token", "token"]
    assert bench.batch[-1] == structural.type


def test_sixty_four_kib_of_tokens_go_at_once() -> None:
    bench = running()
    bench.receive(*[token("x" * 8_000) for _ in range(8)])
    assert bench.in_flight is None
    bench.receive(token("x" * 8_000))
    assert bench.batch == ["token"] * 9


@pytest.mark.proves("P-LOG-10")
def test_batches_of_tokens_leave_a_tenth_of_a_second_for_others() -> None:
    bench = running()
    flood = [token("x" * 8_000) for _ in range(9)]
    sent_at = []
    for _ in range(5):
        bench.receive(*flood)
        while bench.in_flight is None:
            bench.wait(0.01)
        sent_at.append(bench.seconds)
        bench.land()
    pauses = [later - earlier for earlier, later in pairwise(sent_at)]
    assert min(pauses) >= 0.1 - 1e-9


@pytest.mark.proves("P-LOG-3")
def test_one_append_is_in_flight_and_what_comes_later_goes_into_the_next() -> None:
    bench = running()
    bench.receive(message("a", "m1"))
    bench.receive(token("b", "m2"), message("b", "m2"))
    assert bench.batch == ["message"]
    bench.land()
    assert bench.batch == ["token", "message"]


@pytest.mark.proves("P-LOG-7")
def test_a_structural_event_is_shown_when_it_is_known_to_be_committed() -> None:
    bench = running()
    bench.receive(token(), message(), token("b", "m2"))
    assert bench.types_shown == ["token"], "and a token waits behind it"
    bench.land()
    assert bench.types_shown == ["token", "message", "token"]


def test_what_was_uncommitted_is_measured_until_it_is_committed() -> None:
    bench = running()
    bench.receive(tool_start(), token(), message())
    assert bench.writer.uncommitted_events == 3, "one in flight, two behind it"
    assert bench.writer.uncommitted_bytes >= len(message().data)
    bench.land_all()
    assert (bench.writer.uncommitted_events, bench.writer.uncommitted_bytes) == (0, 0)


@pytest.mark.proves("P-LOG-12")
def test_a_writer_that_nobody_confirms_shows_nothing_uncommitted() -> None:
    bench = running()
    bench.receive(token())
    bench.wait(11.9)
    bench.receive(token())
    assert bench.types_shown == ["token"] * 2
    bench.wait(0.1)
    bench.receive(token(), token())
    assert bench.types_shown == ["token"] * 2, "TTL - 3 s have passed"


@pytest.mark.proves("P-LOG-12")
def test_a_confirmation_shows_what_waited_for_it() -> None:
    bench = running()
    bench.wait(1.0)
    bench.wait(12.0)
    bench.receive(token(), token())
    assert bench.types_shown == []
    assert bench.polling_after is not None
    bench.answer_poll()
    assert bench.types_shown == ["token"] * 2


def test_an_append_confirms_the_lease_from_when_it_was_sent() -> None:
    bench = running()
    bench.wait(11.0)
    bench.receive(message())
    bench.wait(3.0)
    bench.receive(token("b", "m2"))
    assert bench.types_shown == []
    bench.land()
    assert bench.types_shown == ["message", "token"]
    bench.wait(8.9)
    bench.receive(token("c", "m2"))
    assert len(bench.shown) == 3
    bench.wait(0.2)
    bench.receive(token("d", "m2"))
    assert len(bench.shown) == 3, "12 s after it was sent, though 9 s after it was known"


def test_a_quiet_writer_looks_at_the_log_every_second_and_renews_every_five() -> None:
    bench = running()
    polls = 0
    for _ in range(150):
        bench.wait(0.1)
        if bench.polling_after is not None:
            assert bench.polling_after == bench.log.view.last_slot
            bench.answer_poll()
            polls += 1
    assert polls in (14, 15)
    assert len(bench.all(fx.Renew)) == 4


def test_a_busy_writer_need_not_look() -> None:
    bench = running()
    for _ in range(30):
        bench.receive(message())
        bench.land()
        bench.wait(0.3)
    assert bench.all(fx.Poll) == []


def test_a_record_that_met_another_goes_again_unchanged_at_the_next_slot() -> None:
    bench = running()
    bench.receive(token(), message())
    first = bench.in_flight
    assert isinstance(first, Events)
    bench.log.cancel("t0")
    bench.receive(token("b", "m2"))
    bench.land()
    second = bench.in_flight
    assert isinstance(second, Events)
    assert second.slot == first.slot + 1
    assert second.events[: len(first.events)] == first.events
    bench.land()
    assert not bench.turn.cancelled, "it was another turn's cancel"


@pytest.mark.proves("S58", "P-EVT-1")
def test_a_turn_that_ends_is_committed_shown_and_closed_at_once() -> None:
    bench = running()
    bench.receive(token(), message(), done())
    assert bench.closed is None
    bench.land()
    assert bench.types_shown == ["token", "message", "done"]
    assert bench.closed == fx.Close(fenced=False, released=False)
    assert bench.log.types == ["turn_start", "token", "message", "done"]


@pytest.mark.proves("P-EVT-1", "P-EVT-4")
def test_a_terminal_event_closes_what_the_runtime_left_open_first() -> None:
    bench = running()
    bench.receive(token("half"), tool_start("c1"))
    bench.land()
    bench.receive(tool_start("c2", executor="client"), done())
    bench.settle_and_close()
    assert bench.log.types[2:] == ["tool_start"] * 2 + ["message"] + ["tool_end"] * 2 + ["done"]
    message_end, c1, c2 = bench.log.events[4:7]
    assert '"text":"half"' in message_end.data
    assert '"status":"incomplete"' in message_end.data
    assert '"outcome":"unknown"' in c1.data, "its gate was opened"
    assert '"outcome":"not_executed"' in c2.data


def test_nothing_of_a_turn_follows_its_terminal_event() -> None:
    bench = running()
    bench.receive(done())
    bench.receive(token())
    bench.receive(tool_end())
    bench.settle_and_close()
    assert bench.log.types == ["turn_start", "done"]


@pytest.mark.proves("S58")
def test_a_terminal_event_in_the_middle_of_a_message_ends_the_turn_at_once() -> None:
    bench = running()
    bench.receive(token(), done(), token())
    bench.land_all()
    assert bench.log.types == ["turn_start", "token", "message", "done"]
    assert bench.closed is not None


@pytest.mark.proves("P-EVT-8")
def test_a_message_cut_short_is_no_larger_than_an_event_may_be() -> None:
    bench = running()
    for _ in range(20):
        bench.receive(token("x" * 60_000))
        bench.wait(0.5)
        bench.land_all()
    bench.end_stream("runtime_error", retryable=False)
    bench.settle_and_close()
    assert bench.log.types[-2:] == ["message", "error"]
    assert max(event.size_bytes for event in bench.log.events) <= bench.settings.event_limit_bytes
