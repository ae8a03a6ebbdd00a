"""Runs worlds: one seed, or many in several processes.

Knows nothing of what a world holds. A run is clean only if its judge found nothing, it came to rest, and no
task of the code under test failed on the way. All of it in virtual time.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from edge.core.errors import EdgeError
from tests.simulation.loop import SimulatedLoop
from tests.simulation.world import World
from tests.support.history import Kind, Violation
from tests.support.virtual_loop import Deadlock, OutOfTime

LIMIT_SECONDS = 1_000.0
OVERDUE_MAX = 200
"""A few timers are set for a time that has passed (after a pause, say); hundreds are a spin."""
DEFECTS = ("tasks_failed", "driver_failed", "append_refused")
"""Counters of the edge that no fault of the world excuses."""


@dataclass(slots=True)
class Outcome:
    """What one run left."""

    seed: int
    violations: list[Violation]
    counts: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)


class _Errors(logging.Handler):
    """Keeps what the code under test logs as an error."""

    def __init__(self, found: list[Violation]) -> None:
        super().__init__(logging.ERROR)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found.append(_with_cause(record.getMessage(), record.exc_info and record.exc_info[1]))


def run_seed(seed: int) -> Outcome:
    """Run one world from its beginning to its end, and judge it."""
    loop = SimulatedLoop(random.Random(f"{seed}/schedule"), limit_seconds=LIMIT_SECONDS)
    found: list[Violation] = []
    loop.set_exception_handler(lambda _, context: _complain(found, context))
    with _errors_into(found), _no_collections():
        try:
            world = loop.run_until_complete(_make(seed, loop))
            try:
                loop.run_until_complete(world.live())
            except (AssertionError, TimeoutError, EdgeError) as error:
                found.append(_with_cause("the run failed", error))
            found += world.judge.finish()
            counts = world.weather.counts
            found += [_defect(f"{name}: {counts[name]}") for name in DEFECTS if counts[name]]
            if (
                counts["log_broken"] and not world.ages
            ):  # what expires between two pages leaves a hole
                found.append(_defect("an edge found the log broken"))
            if loop.overdue_timers > OVERDUE_MAX:
                found.append(
                    _defect(f"{loop.overdue_timers} timers were set that were due: something spins")
                )
            outcome = Outcome(seed, list(found), world.weather.counts + world.judge.counts)
            outcome.counts["steps"], outcome.counts["virtual_seconds"] = (
                loop.steps,
                int(loop.time()),
            )
        finally:
            clear_away(loop)
    return outcome


async def _make(seed: int, loop: SimulatedLoop) -> World:
    return World(seed, loop)


def _complain(found: list[Violation], context: dict[str, Any]) -> None:
    error = context.get("exception")
    if not isinstance(error, EdgeError):  # what a dead process did not wait for is no defect
        found.append(_with_cause(context["message"], error))


def _with_cause(message: str, error: object) -> Violation:
    if not isinstance(error, BaseException):
        return _defect(message)
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    way = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    return _defect(f"{message}: {error!r} in {way}")


def _defect(text: str) -> Violation:
    return Violation(Kind.OTHER, text)


@contextmanager
def _errors_into(found: list[Violation]) -> Iterator[None]:
    handler, log = _Errors(found), logging.getLogger("edge")
    log.addHandler(handler)
    propagates, log.propagate = log.propagate, False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagates


@contextmanager
def _no_collections() -> Iterator[None]:
    """A collection in the middle of a run would close coroutines at a moment that no seed decides."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def clear_away(loop: SimulatedLoop) -> None:
    """End every task, also those of dead processes; nothing is judged any more."""
    loop.set_exception_handler(lambda _loop, _context: None)
    for process in loop.processes:
        process.bury()
    for _ in range(20):
        tasks = asyncio.all_tasks(loop)
        if not tasks:
            break
        for task in tasks:
            task.cancel()
        try:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        except (Deadlock, OutOfTime):
            continue
    loop.close()
