"""A seeded loop in virtual time that runs several processes, any of which may stop at any moment.

Knows nothing of edges or runtimes. Whatever was started in a process carries that process in its
context, through every task, timer and callback; a process that is paused has none of them run, as
under SIGSTOP, and one that is killed never again. Requests in flight belong to no process.

One seed decides everything: which ready callback runs next is drawn from it, and nothing here looks
at a wall clock or at the order of a set.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar, TypeVarTuple, cast

from tests.support.virtual_loop import OutOfTime, VirtualLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

LEAST_SECONDS = 0.001
STEPS_MAX = 200_000
"""A run takes some thousands; this many are a circle."""

_PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


class Process:
    """What runs in its context stops and goes on with it."""

    def __init__(self, loop: SimulatedLoop, name: str) -> None:
        self.name = name
        self.alive = True
        self.held: deque[asyncio.Handle] | None = None
        """What would have run meanwhile; ``None`` while the process is not stopped."""
        self._loop = loop
        self._context = copy_context()
        self._context.run(_PROCESS.set, self)
        loop.processes.append(self)

    @property
    def running(self) -> bool:
        return self.alive and self.held is None

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T] | None:
        """Run ``work`` as a task of the process; a dead one takes none."""
        if not self.alive:
            work.close()
            return None
        return self._loop.create_task(work, context=self._context.copy())

    def deliver(self, call: Callable[[*Ts], object], *args: *Ts) -> None:
        """Have the process make a call, as soon as it runs. To a dead one it is lost."""
        if self.alive:
            self._loop.call_soon(call, *args, context=self._context.copy())

    def within(self, call: Callable[[*Ts], T], *args: *Ts) -> T:
        """Make a call in the process, now."""
        return self._context.copy().run(call, *args)

    def pause(self) -> None:
        self.held = deque() if self.held is None else self.held

    def resume(self) -> None:
        """Let everything run that was held, in any order."""
        if self.alive:
            self._release()

    def kill(self) -> None:
        self.pause()
        self.alive = False

    def bury(self) -> None:
        """Let the tasks of a dead process be cleared away, once nothing is judged any more."""
        self._release()

    def _release(self) -> None:
        held, self.held = self.held, None
        self._loop.make_ready(held or ())


class SimulatedLoop(VirtualLoop):
    """Runs one ready callback after the other, picked by the seed."""

    def __init__(self, chance: random.Random, *, limit_seconds: float) -> None:
        super().__init__(limit_seconds=limit_seconds)
        self.processes: list[Process] = []
        self.steps = 0
        self.overdue_timers = 0
        self._random = chance.random
        # Belongs to no process: the network, the store and the people run in it.
        self._outside = copy_context()
        self._ready: deque[asyncio.Handle] = deque()
        self._scheduled: list[asyncio.TimerHandle] = []

    def make_ready(self, handles: Any) -> None:
        """Put callbacks back that were held."""
        self._ready.extend(handles)

    def later(self, seconds: float, call: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call outside of every process: no stop of the sender can keep it from happening."""
        self.call_later(seconds, call, *args, context=self._outside)

    def spawn_outside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self.create_task(work, context=self._outside.copy())

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a timer. One that is due already costs a little time, as everything does in earnest:
        otherwise whoever sets such a timer again and again would stop the clock for all."""
        if when <= self._now_seconds:
            self.overdue_timers += 1
            when = self._now_seconds + LEAST_SECONDS
        return super().call_at(when, callback, *args, context=context)

    def _run_once(self) -> None:
        self._take_due_timers()
        ready = self._ready
        if len(ready) > 1:
            ready.rotate(-int(self._random() * len(ready)))
        if not ready:
            return
        handle = ready.popleft()
        if handle.cancelled():
            return
        process = cast(Context, handle._context).get(_PROCESS)  # type: ignore[attr-defined]
        if process is not None and process.held is not None:
            process.held.append(handle)
            return
        self.steps += 1
        if self.steps > STEPS_MAX:
            self.steps = 0
            raise OutOfTime(f"no end after {STEPS_MAX} steps, at {self._now_seconds:.3f} s")
        handle._run()

    def _take_due_timers(self) -> None:
        timers = self._scheduled
        while timers and timers[0].cancelled():
            heapq.heappop(timers)._scheduled = False  # type: ignore[attr-defined]
        if not self._ready:
            self._jump(timers[0].when() - self._now_seconds if timers else None)
        while timers and timers[0].when() <= self._now_seconds:
            timer = heapq.heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            self._ready.append(timer)


def simulated() -> SimulatedLoop:
    """Return the running loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop), "only in virtual time"
    return loop


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    finally:
        work.close()
    raise AssertionError("it waited")
