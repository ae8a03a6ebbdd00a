"""Requests for turns with any key, from anywhere, at any moment, against a dict: one key is one turn.

Knows nothing of HTTP. Two edges share a journal under virtual time; the dict holds, for each key, the body that came
first. What a failed request left behind is looked up in the store itself, for that is what its repeat will meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from edge.core.errors import (
    EdgeError,
    IdempotencyKeyReused,
    JournalUnavailable,
    SessionExpired,
    TurnInProgress,
)
from edge.core.event import TURN_START
from edge.core.patience import WriterSettings
from edge.core.requests import TurnStarted
from edge.journal.memory import MemoryJournal
from edge.sessions.commands import turn_id_for
from edge.sessions.registry import Registry
from edge.sessions.settings import SessionSettings
from tests.support.faulty_journal import Fault, FaultyJournal
from tests.support.house import UID, Client, LoopClock, edge, log_events, request
from tests.support.machines import machine_settings
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import VirtualLoop, elapse

RETENTION_SECONDS = 300.0
SETTLED_SECONDS = 6.0
"""After this nothing of a failed request is under way any more."""
SETTINGS = SessionSettings(writer=WriterSettings(retention_ms=int(RETENTION_SECONDS * 1000)))
TROUBLE: dict[str, dict[str, Fault]] = {
    "lost": {"append": Fault.LOST},
    "unanswered": {"append": Fault.UNANSWERED, "read": Fault.LOST},
    "late": {"append": Fault.LATE, "read": Fault.LOST},
}
edges = st.integers(0, 1)
keys = st.sampled_from(["a" * 16, "b" * 16, "c" * 16])
bodies = st.sampled_from(["hello", "hello", "other"])
Answer = TurnStarted | EdgeError


class IdempotencyMachine(RuleBasedStateMachine):
    """One session; a turn goes on until it is told to end."""

    def __init__(self) -> None:
        super().__init__()
        loop = VirtualLoop(limit_seconds=float("inf"))
        self.runner = asyncio.Runner(loop_factory=lambda: loop)
        self.bodies: dict[str, str] = {}
        self.running: str | None = None
        self.expired = False
        self.do(self.open())

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        self.runner.run(work)

    async def open(self) -> None:
        self.end = asyncio.Event()
        self.journal = MemoryJournal(LoopClock(), log_retention_seconds=RETENTION_SECONDS)
        self.wires = [FaultyJournal(self.journal) for _ in range(2)]
        self.runtimes = [RuntimeDouble(self.agent) for _ in range(2)]
        pairs = zip(self.wires, self.runtimes, strict=True)
        self.edges = [edge(w, r, SETTINGS, seed=n) for n, (w, r) in enumerate(pairs, start=1)]
        self.session_id = await self.edges[0].create_session(UID)

    async def agent(self, attempt: Attempt) -> None:
        attempt.text("m1", "word")
        await self.end.wait()
        attempt.message("m1", "word")

    # --- what callers do --------------------------------------------------------------------------

    @rule(at=edges, key=keys, body=bodies)
    def asks(self, at: int, key: str, body: str) -> None:
        self.do(self.settled(at, key, body))

    async def settled(self, at: int, key: str, body: str) -> None:
        self.judge(await self.ask(self.edges[at], key, body), key, body)

    @rule(at=edges, key=keys, body=bodies, trouble=st.sampled_from(sorted(TROUBLE)))
    def asks_and_hears_nothing(self, at: int, key: str, body: str, trouble: str) -> None:
        self.do(self.unsettled(at, key, body, TROUBLE[trouble]))

    async def unsettled(self, at: int, key: str, body: str, faults: dict[str, Fault]) -> None:
        wire = self.wires[at]
        wire.plan = lambda method, n: faults.get(method)
        answer = await self.ask(self.edges[at], key, body)
        wire.heal()
        if not isinstance(answer, JournalUnavailable):
            self.judge(answer, key, body)
            return
        await elapse(SETTLED_SECONDS)
        entry = await self.journal.turn(self.session_id, self.turn_id(key))
        if entry is not None and key not in self.bodies:
            assert self.running is None
            self.bodies[key], self.running = body, key

    @rule(key=keys, first=bodies, second=bodies, same_edge=st.booleans())
    def two_ask_at_once(self, key: str, first: str, second: str, same_edge: bool) -> None:
        self.do(self.both(key, first, second, self.edges[0 if same_edge else 1]))

    async def both(self, key: str, first: str, second: str, other: Registry) -> None:
        asked = self.ask(self.edges[0], key, first), self.ask(other, key, second)
        answers = list(zip(await asyncio.gather(*asked), (first, second), strict=True))
        # Whoever was quicker is judged first: the other one met what it left.
        for answer, body in sorted(answers, key=lambda pair: not is_new(pair[0])):
            self.judge(answer, key, body)

    @rule(keys=st.permutations(["a" * 16, "b" * 16, "c" * 16]))
    def rivals_ask_at_once(self, keys: list[str]) -> None:
        self.do(self.rivals(keys))

    async def rivals(self, keys: list[str]) -> None:
        asked = [self.ask(self.edges[n % 2], key, "hello") for n, key in enumerate(keys)]
        answers = zip(await asyncio.gather(*asked), keys, strict=True)
        for answer, key in sorted(answers, key=lambda pair: not is_new(pair[0])):
            self.judge(answer, key, "hello")

    async def ask(self, registry: Registry, key: str, body: str) -> Answer:
        try:
            return await registry.start_turn(UID, self.session_id, request(body, key))
        except EdgeError as refused:
            return refused

    # --- what time does ---------------------------------------------------------------------------

    @precondition(lambda self: self.running is not None)
    @rule(at=edges)
    def the_turn_ends(self, at: int) -> None:
        self.do(self.finish(self.edges[at]))

    async def finish(self, registry: Registry) -> None:
        self.end.set()
        client = Client()
        while not client.finished or self.turn_id(str(self.running)) not in client.view[-1].data:
            client.view.clear()
            client.cursor = None
            await client.watch(registry, self.session_id)
            await elapse(1.0)
        self.end.clear()
        self.running = None

    @rule(seconds=st.sampled_from([0.01, 1.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.do(elapse(seconds))

    @precondition(lambda self: self.running is None and self.bodies)
    @rule()
    def the_log_expires(self) -> None:
        self.do(elapse(RETENTION_SECONDS + 100))
        self.expired = True

    # --- the model --------------------------------------------------------------------------------

    def turn_id(self, key: str) -> str:
        return turn_id_for(UID, self.session_id, key)

    def judge(self, answer: Answer, key: str, body: str) -> None:
        """Compare an answer with the only right one."""
        if self.expired:
            assert isinstance(answer, SessionExpired)
        elif key in self.bodies and self.bodies[key] != body:
            assert isinstance(answer, IdempotencyKeyReused)
        elif key in self.bodies:
            assert isinstance(answer, TurnStarted)
            assert (answer.turn_id, answer.replayed) == (self.turn_id(key), True)
        elif self.running is not None:
            assert isinstance(answer, TurnInProgress)
            assert answer.turn_id == self.turn_id(self.running)
        else:
            assert isinstance(answer, TurnStarted)
            assert (answer.turn_id, answer.replayed) == (self.turn_id(key), False)
            self.bodies[key], self.running = body, key

    def teardown(self) -> None:
        self.do(self.close())
        self.runner.close()

    async def close(self) -> None:
        """Each turn began once, in the log and at a runtime."""
        if not self.expired:
            events = await log_events(self.journal, self.session_id)
            firsts = [e for e in events if e.type == TURN_START and '"attempt":1,' in e.data]
            assert [e.subject for e in firsts] == [self.turn_id(key) for key in self.bodies]
        calls = [(c.ref.turn_id, c.ref.attempt) for r in self.runtimes for c in r.calls]
        assert len(calls) == len(set(calls))
        for registry in self.edges:
            await registry.close()


def is_new(answer: Answer) -> bool:
    return isinstance(answer, TurnStarted) and not answer.replayed


@pytest.mark.timeout(600)
@pytest.mark.proves("P-HTTP-5", "P-HTTP-6", "P-HTTP-15", "P-LOG-11")
def test_whoever_asks_with_a_key_however_often_there_is_one_turn_for_it() -> None:
    run_state_machine_as_test(IdempotencyMachine, settings=machine_settings(40, 20))
