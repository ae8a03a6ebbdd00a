"""The scripted runtime: processes that run attempts, and each edge's link to them.

Knows nothing of sessions. Attempts are fenced as P-RUN-3 says: one that is not above the highest seen
is superseded, and a higher one abandons its elder. A runtime that is started anew has forgotten that,
as a real one has.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from edge.core.event import Draft
from edge.ports import AttemptCall, AttemptRef, AttemptSuperseded, RuntimeEnded, RuntimeInfo
from tests.simulation.attempt import Attempt, Run, Script, Suspend
from tests.simulation.loop import Process, SimulatedLoop, simulated
from tests.simulation.weather import TICK_SECONDS, Weather

T = TypeVar("T")

IDLE_SECONDS = 20.0
"""After which an edge takes a silent runtime for lost."""


class Stream:
    """The edge's end of one attempt: an ``edge.ports.AttemptStream``."""

    def __init__(self, open_call: Callable[[Stream], None], weather: Weather) -> None:
        self._open_call = open_call
        self._weather = weather
        self._opened = False
        self._left = False
        self._inbox: deque[list[Draft] | Exception | None] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._due = 0.0
        self.on_leave: Callable[[], None] | None = None

    # --- at the edge ----------------------------------------------------------------------------------

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Sequence[Draft]:
        if not self._opened:
            self._opened = True
            self._open_call(self)
        if not self._inbox and not self._left:
            await self._wait()
        if self._left:
            raise StopAsyncIteration
        item = self._inbox.popleft()
        if isinstance(item, list):
            return item
        self.cancel()
        raise item if item is not None else StopAsyncIteration

    def cancel(self) -> None:
        if not self._left:
            self._left = True
            self._wake()
            if self.on_leave is not None:
                self._weather.loop.later(self._weather.latency(), self.on_leave)

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(
            IDLE_SECONDS, self._put, RuntimeEnded("runtime_timeout", retryable=True)
        )
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    # --- at the runtime -------------------------------------------------------------------------------

    def send(self, item: list[Draft] | Exception | None) -> None:
        """Send what comes next: events, a failure, or the end. Nothing overtakes anything."""
        loop = self._weather.loop
        self._due = max(self._due + TICK_SECONDS, loop.time() + self._weather.latency())
        loop.later(self._due - loop.time(), self._put, item)

    def _put(self, item: list[Draft] | Exception | None) -> None:
        if not self._left:
            self._inbox.append(item)
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class RuntimeProcess:
    """Runs attempts until it is killed."""

    def __init__(
        self, loop: SimulatedLoop, name: str, scripts: Callable[[str], Script], run: Run
    ) -> None:
        self.process = Process(loop, name)
        self._scripts = scripts
        self._run = run
        self._highest: dict[str, int] = {}
        self._attempts: dict[str, tuple[Attempt, Stream, asyncio.Task[None] | None]] = {}

    def begin(self, call: AttemptCall, stream: Stream, *, suspends: bool) -> None:
        """Admit and start an attempt."""
        turn_id, number = call.ref.turn_id, call.ref.attempt
        if number <= self._highest.get(turn_id, 0):
            stream.send(AttemptSuperseded())
            return
        self._highest[turn_id] = number
        self.abandon(turn_id)
        attempt = Attempt(call, send=stream.send, on_run=self._run, suspends=suspends)
        task = self.process.spawn(self._drive(attempt, stream))
        self._attempts[turn_id] = (attempt, stream, task)

    def leave(self, ref: AttemptRef) -> None:
        """The edge hung up: nobody could commit what the attempt did any more."""
        if self.held(ref) is not None:
            self.abandon(ref.turn_id)

    def held(self, ref: AttemptRef) -> Attempt | None:
        attempt = self._attempts[ref.turn_id][0] if ref.turn_id in self._attempts else None
        return attempt if attempt is not None and attempt.call.ref == ref else None

    def abandon(self, turn_id: str) -> None:
        if turn_id not in self._attempts:
            return
        attempt, stream, task = self._attempts.pop(turn_id)
        attempt.seal()
        stream.send(AttemptSuperseded())
        if task is not None:
            task.cancel()

    def kill(self) -> None:
        """Stop at once. Whoever reads a stream of it notices."""
        self.process.kill()
        for _, stream, _ in self._attempts.values():
            stream.send(RuntimeEnded("runtime_unavailable", retryable=True))

    async def _drive(self, attempt: Attempt, stream: Stream) -> None:
        end: Exception | None = None
        try:
            await self._scripts(attempt.turn_id)(attempt)
            attempt.finish()
        except Suspend as suspension:
            attempt.suspend(suspension)
        except RuntimeEnded as ended:
            end = ended
        attempt.flush()
        stream.send(end)
        attempt.seal()
        self._attempts.pop(attempt.turn_id, None)


class RuntimeLink:
    """A ``Runtime``: one edge's way to the runtimes behind one target."""

    def __init__(
        self,
        weather: Weather,
        choose: Callable[[], RuntimeProcess],
        *,
        suspends: bool,
        on_start: Callable[[AttemptCall], None],
    ) -> None:
        self._weather = weather
        self._on_start = on_start
        self._choose = choose
        self._suspends = suspends
        self.streams: dict[Stream, None] = {}

    async def info(self) -> RuntimeInfo:
        return RuntimeInfo(["agent"], resume_supported=True)

    def start(self, call: AttemptCall) -> Stream:
        stream = Stream(lambda stream: self._open(call, stream), self._weather)
        self.streams[stream] = None
        return stream

    def _open(self, call: AttemptCall, stream: Stream) -> None:
        self._on_start(call)
        runtime = self._choose()

        def lost() -> None:
            if not arrived or not runtime.process.alive:
                stream.send(RuntimeEnded("runtime_unavailable", retryable=True))

        def arrive() -> None:
            if not arrived:
                arrived.append(True)
                runtime.process.deliver(
                    lambda: runtime.begin(call, stream, suspends=self._suspends)
                )

        arrived: list[bool] = []
        stream.on_leave = lambda: runtime.process.deliver(runtime.leave, call.ref)
        # A request that was given up may still arrive; gRPC never sends one twice.
        self._weather.carry(arrive, repeatable=True, lost=lost)

    async def ack(self, ref: AttemptRef, committed_index: int) -> bool:
        def acknowledge(attempt: Attempt) -> None:
            attempt.acknowledge(committed_index)

        return await self._tell(ref, acknowledge, "acks")

    async def cancel(self, ref: AttemptRef, reason: str, grace_seconds: float) -> bool:
        return await self._tell(ref, Attempt.cancel, "runtime_cancels")

    async def close(self) -> None:
        """Every open stream ends with its edge; see ``hang_up``."""

    def hang_up(self) -> None:
        """The edge is gone: its runtimes notice sooner or later."""
        for stream in self.streams:
            if stream.on_leave is not None:
                self._weather.loop.later(self._weather.chance.uniform(0.01, 3.0), stream.on_leave)

    async def _tell(self, ref: AttemptRef, tell: Callable[[Attempt], None], name: str) -> bool:
        """Any failure is a no: nobody knows whether the attempt was told."""
        runtime, weather = self._choose(), self._weather
        reply: asyncio.Future[bool] = simulated().create_future()

        def settle(told: bool) -> None:
            if not reply.done():
                weather.counts[name if told else f"{name}_missed"] += 1
                reply.set_result(told)

        def arrive() -> None:
            attempt = runtime.held(ref)
            if attempt is not None:
                tell(attempt)
            weather.answer(lambda: settle(attempt is not None))

        weather.carry(
            lambda: runtime.process.deliver(arrive), repeatable=True, lost=lambda: settle(False)
        )
        return await reply
