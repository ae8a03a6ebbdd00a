"""Breadth-first search of every reachable state; a counterexample is a shortest one.

Knows nothing of the protocol. Besides what must always hold it checks that the end stays within reach of every
state, without further faults (property P7).
"""

from __future__ import annotations

import gc
import time
from array import array
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from tests.simulation.model.log import overwritten
from tests.simulation.model.properties import reached, violated
from tests.simulation.model.records import show_events
from tests.simulation.model.state import State, Step, World
from tests.simulation.model.world import settled, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a search has found."""

    states: int
    transitions: int
    depth: int
    seconds: float
    """Of wall time."""
    complete: bool
    """Whether every reachable state was seen; otherwise it was stopped at its limit, or at a fault."""
    fault: str | None = None
    trace: list[str] = field(default_factory=list)
    """The way to the fault, a line per step."""


class Search:
    """One search. It stops at ``limit`` states."""

    def __init__(self, world: World, *, limit: int = 10**8) -> None:
        self._world = world
        self._limit = limit
        start = world.start()
        self._states = [start]
        self._places = {start: 0}
        self._parents = array("i", [-1])
        self._sources = array("i")
        self._targets = array("i")
        self._depth = 0
        self._started_at = time.monotonic()

    def run(self) -> Outcome:
        """Search until a fault, the end, or the limit."""
        with _without_collector():
            place, layer = 0, 1
            while place < len(self._states):
                if place == layer:
                    self._depth, layer = self._depth + 1, len(self._states)
                if len(self._states) > self._limit:
                    return self._outcome(complete=False)
                bad = self._expand(place)
                if bad is not None:
                    return bad
                place += 1
            return self._check_progress()

    def _expand(self, place: int) -> Outcome | None:
        world, before = self._world, self._states[place]
        for step in steps(world, before):
            if step.fault is not None:
                return self._found(step.fault, place, step)
            if step.state.log is not before.log and overwritten(before.log, step.state.log):
                return self._found("P1 a committed record was overwritten", place, step)
            state = settled(world, step.state)
            target = self._places.get(state)
            if target is None:
                target = self._places[state] = len(self._states)
                self._states.append(state)
                self._parents.append(place)
                fault = violated(world, state)
                if fault is not None:
                    return self._found(fault, place, step)
            self._sources.append(place)
            self._targets.append(target)
        return None

    def _check_progress(self) -> Outcome:
        """Walk back from every good end; whoever is not met cannot get to one."""
        arrivals = _arrivals(self._sources, self._targets, len(self._states))
        able = bytearray(len(self._states))
        goals = deque(n for n, state in enumerate(self._states) if reached(self._world, state))
        for goal in goals:
            able[goal] = 1
        while goals:
            for source in arrivals(goals.popleft()):
                if not able[source]:
                    able[source] = 1
                    goals.append(source)
        stuck = able.find(0)
        if stuck >= 0:
            return self._found("P7 the end cannot be reached any more", stuck, None)
        return self._outcome(complete=True)

    def _found(self, fault: str, place: int, step: Step | None) -> Outcome:
        trace = self._trace(place)
        if step is not None:
            trace.append(_line(step))
        return self._outcome(complete=False, fault=fault, trace=trace)

    def _outcome(
        self, *, complete: bool, fault: str | None = None, trace: list[str] | None = None
    ) -> Outcome:
        return Outcome(
            states=len(self._states),
            transitions=len(self._sources),
            depth=self._depth,
            seconds=time.monotonic() - self._started_at,
            complete=complete,
            fault=fault,
            trace=trace or [],
        )

    def _trace(self, place: int) -> list[str]:
        path = [place]
        while self._parents[path[-1]] >= 0:
            path.append(self._parents[path[-1]])
        states = [self._states[n] for n in reversed(path)]
        return [_line(self._between(before, after)) for before, after in pairwise(states)]

    def _between(self, before: State, after: State) -> Step:
        return next(
            step for step in steps(self._world, before) if settled(self._world, step.state) == after
        )


@contextmanager
def _without_collector() -> Iterator[None]:
    """States hold no cycles, and walking through millions of them again and again takes half the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _arrivals(sources: array[int], targets: array[int], count: int) -> _Arrivals:
    starts = array("i", bytes(4 * (count + 1)))
    for target in targets:
        starts[target + 1] += 1
    for place in range(count):
        starts[place + 1] += starts[place]
    free, ordered = array("i", starts), array("i", bytes(4 * len(sources)))
    for source, target in zip(sources, targets, strict=True):
        ordered[free[target]] = source
        free[target] += 1
    return _Arrivals(starts, ordered)


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """The transitions by where they end."""

    starts: array[int]
    sources: array[int]

    def __call__(self, target: int) -> array[int]:
        return self.sources[self.starts[target] : self.starts[target + 1]]


def _line(step: Step) -> str:
    said = " ".join(str(part) for part in step.label if part != "")
    log, edges, browser = step.state.log, step.state.edges, step.state.browser
    slots = " ".join(map(str, log.slots))
    owners = " ".join(
        f"{name}:{edge.epoch}/{edge.read}+{show_events(edge.buffer)}{edge.stage}"
        for name, edge in zip("AB", edges, strict=True)
        if edge.owner
    )
    return (
        f"{said:<66} {slots} | {owners} screen={show_events(browser.screen)}@{'AB-'[browser.edge]}"
    )
