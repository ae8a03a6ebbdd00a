"""The writer against anything that can happen: random inputs, and the invariants of the bench at every step.

Knows nothing of likely stories; those are in the other files. The journal is a real log, the runtime keeps to the
protocol most of the time, and every writer must come to an end once it is answered.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from edge.core import inputs as ins
from edge.core.event import TERMINAL, TOOL_END, TOOL_START
from edge.core.log import Resolve
from edge.core.session import Session
from edge.core.turn import TurnState
from edge.core.writer import Stage
from tests.core.samples import (
    DENIED,
    EXECUTE,
    custom,
    done,
    message,
    progress,
    reasoning,
    suspended,
    token,
    tool_end,
    tool_start,
)
from tests.core.writer_bench import Bench, owned_turn

SETTINGS = settings(
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)

PLAIN = {
    "token": token("a"),
    "much text": token("x" * 70_000),
    "reasoning": reasoning("b", "m2"),
    "progress": progress("c1"),
    "custom": custom(),
    "passing": custom(structural=False),
    "message": message("done", "m1"),
}
plain = st.sampled_from(sorted(PLAIN))
RUNTIME_TROUBLE = ["fails", "ends_what_never_started", "says_too_much", "repeats_a_call"]
TROUBLE = [
    "cancelled_elsewhere",
    "asked_to_cancel",
    "another_turn_cancelled",
    "taken_over",
    "asked_to_drain",
    "is_gone",
    "has_a_newer_attempt",
]
waits = st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.6, 1.0, 4.0, 12.5])


class WriterMachine(RuleBasedStateMachine):
    """One writer; rules are what a runtime, a journal, other edges and a clock may do to it."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.calls = 0
        self.drained = False
        self.read = Session()  # what a reader knows who reads at every step

    @initialize(before=st.sampled_from(["fresh", "crashed", "parked", "gate", "cancelled"]))
    def begin(self, before: str) -> None:
        """The turn has just started, or was left behind by another writer in some state."""
        if before == "fresh":
            return
        log = owned_turn(token("old"), tool_start("c0"))
        if before == "parked":
            log.write(suspended("input_required", "c0"))
            log.resolve("c0")
        elif before == "gate":
            log.write(suspended("checkpoint", "c0"))
        elif before == "cancelled":
            log.cancel()
        self.bench = Bench(log, fresh=False)

    @property
    def open(self) -> bool:
        return self.bench.closed is None

    @property
    def runs(self) -> bool:
        return self.bench.writer.stage is Stage.RUNNING

    @property
    def rare(self) -> bool:
        """Whether the turn has got far enough for what ends most turns."""
        return len(self.bench.effects) >= 6

    # --- the runtime ------------------------------------------------------------------------------

    def call(self) -> str:
        self.calls += 1
        return f"c{self.calls}"

    def open_calls(self) -> list[str]:
        """Calls that the runtime has started and not ended, whether or not the edge numbered them."""
        said = [draft for draft in self.bench.writer._backlog if draft.type == TOOL_START]
        return [*self.bench.turn.calls, *(draft.subject for draft in said)]

    @precondition(lambda self: self.runs)
    @rule(names=st.lists(plain, min_size=1, max_size=4))
    def speaks(self, names: list[str]) -> None:
        self.bench.receive(*[PLAIN[name] for name in names])

    @precondition(lambda self: self.runs)
    @rule(
        count=st.integers(1, 3),
        executor=st.sampled_from(["runtime", "runtime", "client", "provider"]),
        gated=st.booleans(),
        more=st.lists(plain, max_size=2),
    )
    def starts_calls(self, count: int, executor: str, *, gated: bool, more: list[str]) -> None:
        started = [tool_start(self.call(), gated=gated, executor=executor) for _ in range(count)]
        self.bench.receive(*started, *[PLAIN[name] for name in more])

    @precondition(lambda self: self.runs and self.open_calls())
    @rule(data=st.data(), outcome=st.sampled_from(["succeeded", "failed", "not_executed"]))
    def ends_a_call(self, data: st.DataObject, outcome: str) -> None:
        call_id = data.draw(st.sampled_from(self.open_calls()))
        self.bench.receive(tool_end(call_id, outcome))

    @precondition(lambda self: self.runs)
    @rule(reason=st.sampled_from(["checkpoint", "draining", "input_required", "client_tool"]))
    def suspends(self, reason: str) -> None:
        self.bench.receive(suspended(reason, *self.open_calls()))

    @precondition(lambda self: self.runs and self.rare)
    @rule(before=st.lists(plain, max_size=2))
    def finishes(self, before: list[str]) -> None:
        self.bench.receive(*[PLAIN[name] for name in before], done())

    @precondition(lambda self: self.runs)
    @rule(reason=st.sampled_from(["", "runtime_unavailable"]))
    def breaks_off(self, reason: str) -> None:
        self.bench.end_stream(reason)

    def fails(self) -> None:
        self.bench.end_stream("runtime_error", retryable=False)

    def ends_what_never_started(self) -> None:
        self.bench.receive(tool_end("nobody"))

    def says_too_much(self) -> None:
        self.bench.receive(token("x" * 300_000))

    def repeats_a_call(self) -> None:
        self.bench.receive(*[tool_start(call) for call in sorted(self.bench.turn.known_calls)[:1]])

    def is_gone(self) -> None:
        self.bench.feed(ins.AttemptLost(self.bench.turn.attempt))

    def has_a_newer_attempt(self) -> None:
        self.bench.feed(ins.AttemptLost(self.bench.turn.attempt, superseded=True))

    # --- the journal and the other edges ----------------------------------------------------------

    @precondition(lambda self: self.open and self.bench.in_flight is not None)
    @rule()
    def answers_the_append(self) -> None:
        self.bench.land()

    @precondition(lambda self: self.open and self.bench.in_flight is not None)
    @rule()
    def answers_every_append(self) -> None:
        self.bench.land_all()

    @precondition(lambda self: self.open and self.bench.polling_after is not None)
    @rule()
    def answers_the_poll(self) -> None:
        self.bench.answer_poll()

    def waiting_calls(self) -> tuple[str, ...]:
        """Calls that are left to a person, for whoever reads the log."""
        turn = self.read.turn
        return turn.pending if turn is not None and turn.state is TurnState.PARKED else ()

    @precondition(lambda self: self.waiting_calls())
    @rule(data=st.data(), decision=st.sampled_from([EXECUTE, DENIED]))
    def decided_elsewhere(self, data: st.DataObject, decision: str) -> None:
        self.bench.log.resolve(data.draw(st.sampled_from(self.waiting_calls())), decision)

    def cancelled_elsewhere(self) -> None:
        self.bench.log.cancel()

    def another_turn_cancelled(self) -> None:
        self.bench.log.cancel("t0")

    def taken_over(self) -> None:
        self.bench.taken_over()

    # --- the process ------------------------------------------------------------------------------

    def asked_to_cancel(self) -> None:
        self.bench.feed(ins.CancelAsked())

    def asked_to_drain(self) -> None:
        self.drained = True
        self.bench.feed(ins.DrainAsked(self.bench.seconds + 5.0))

    @precondition(lambda self: self.open and self.rare)
    @rule(data=st.data())
    def trouble(self, data: st.DataObject) -> None:
        """Each by itself would be met too often for the turn to get anywhere."""
        possible = TROUBLE + RUNTIME_TROUBLE if self.runs else TROUBLE
        getattr(self, data.draw(st.sampled_from(possible)))()

    @precondition(lambda self: self.open)
    @rule(seconds=waits)
    def time_passes(self, seconds: float) -> None:
        self.bench.seconds += seconds
        self.bench.feed(ins.Tick())

    @precondition(lambda self: not self.open)
    @rule()
    def is_over(self) -> None:
        """Nothing more happens to it."""

    # --- what must hold ---------------------------------------------------------------------------

    @invariant()
    def no_call_starts_in_the_log_after_its_turns_cancel(self) -> None:
        """Judge the records that are new."""
        for record in self.bench.log.after(self.read.view.last_slot):
            cancelled = self.read.turn is not None and self.read.turn.cancelled
            types = [event.type for event in getattr(record, "events", ())]
            assert not (cancelled and TOOL_START in types)
            self.read.apply(record)

    def the_log_is_a_turn_that_a_reader_accepts(self) -> None:
        events = self.bench.log.events
        ends = [event for event in events if event.type in TERMINAL]
        assert len(ends) <= 1
        assert not ends or events[-1] is ends[0]
        starts = Counter(e.subject for e in events if e.type == TOOL_START)
        finished = Counter(e.subject for e in events if e.type == TOOL_END)
        assert not starts or max(starts.values()) == 1
        assert finished <= starts
        assert not ends or finished == starts

    def teardown(self) -> None:
        """Once everything is answered, a turn that is stopped comes to its end."""
        if self.open:
            self.bench.feed(ins.CancelAsked())
            self.bench.settle_and_close()
        self.the_log_is_a_turn_that_a_reader_accepts()
        close = self.bench.closed
        assert close is not None
        if close.fenced:
            return
        if not self.drained:
            assert self.bench.log.events[-1].type in TERMINAL or not self.bench.turn.needs_writer
            self._is_what_a_reader_knows()
            assert [e.seq for e in self.bench.shown] == [
                e.seq for e in self.bench.log.events if e.seq >= self.bench.shown[0].seq
            ]

    def _is_what_a_reader_knows(self) -> None:
        """The owner folds as it numbers, a reader as it reads: both know the same turn."""
        read, owned = self.bench.log.session().turn, self.bench.turn
        assert read is not None
        assert (read.attempt, read.state, read.calls) == (owned.attempt, owned.state, owned.calls)
        assert (read.deltas, read.known_calls) == (owned.deltas, owned.known_calls)
        decided = any(isinstance(record, Resolve) for record in self.bench.log.records)
        assert decided or read.pending == owned.pending


class NeverSpins(WriterMachine):
    """The same world, and a writer that always knows when it wants to be woken."""

    @invariant()
    def a_wake_up_moves_the_next_one_on(self) -> None:
        for _ in range(3):  # a tick may leave what the next one does at once
            wake_at = self.bench.writer.wake_at()
            if wake_at is None or wake_at > self.bench.seconds:
                return
            self.bench.feed(ins.Tick())
        raise AssertionError("woken, and to be woken again at once")


@pytest.mark.proves("P-EVT-1", "P-EVT-4", "P-HTTP-11", "P-LOG-7", "P-LOG-12")
def test_whatever_happens_the_invariants_hold_and_the_turn_ends() -> None:
    run_state_machine_as_test(WriterMachine, settings=SETTINGS)


def test_whatever_happens_the_writer_never_spins() -> None:
    run_state_machine_as_test(NeverSpins, settings=settings(SETTINGS, phases=[Phase.generate]))
