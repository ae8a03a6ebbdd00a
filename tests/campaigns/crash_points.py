"""Fails every awaited call of a two-tool turn, one by one, in every way that a call can fail.

Knows nothing of what makes a turn: it counts the calls that edges make to their journal and their runtime, and
has one of them fail. A turn that makes no such call any more ends the enumeration. In virtual time, also where
the store is a real one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.campaigns.crash_store import Stores, firestore, sqlite
from tests.campaigns.crash_world import Plot, World
from tests.campaigns.plan import Mode, Plan
from tests.campaigns.tally import Tally
from tests.support.checker import violations
from tests.support.faulty_calls import Fault
from tests.support.history import History, Kind, Violation
from tests.support.io_loop import run_with_io

FAULTS = (
    Fault.LOST,
    Fault.UNANSWERED,
    Fault.LATE,
    Fault.SLOW,
    Fault.DIES_BEFORE,
    Fault.DIES_AFTER,
)
PLOTS: Sequence[Plot] = ("ends", "is stopped", "is stopped elsewhere")
POINTS_MAX = 200
"""A turn makes some forty calls, and one with a follower some eighty; this many are a circle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn whose calls are enumerated."""

    stores: Stores
    mode: Mode
    plot: Plot = "ends"

    @property
    def name(self) -> str:
        return f"{self.stores.name}, {self.mode}, {self.plot}"


@dataclass(slots=True)
class Point:
    """The call that is to fail, counted over all edges, and what it turned out to be."""

    number: int
    fault: Fault
    made: int = 0
    method: str = ""

    def plan(self, method: str, _n: int) -> Fault | None:
        """Return the fault if this is the call."""
        self.made += 1
        if self.made != self.number:
            return None
        self.method = method
        return self.fault

    def __str__(self) -> str:
        return f"call {self.number} ({self.method}) {self.fault.value}"


@dataclass(slots=True)
class Enumeration:
    """What became of a turn, point by point."""

    points: Counter[str] = field(default_factory=Counter)
    """How many calls of each method there were to fail, at the fault that left most of them."""
    histories: int = 0
    found: list[Violation] = field(default_factory=list)

    def add(self, other: Enumeration) -> None:
        """Take in another turn's."""
        self.points += other.points
        self.histories += other.histories
        self.found += other.found


def enumerate_points(turn: Turn, faults: Iterable[Fault] = FAULTS) -> Enumeration:
    """Fail each call in each of the given ways."""
    result = Enumeration()
    for fault in faults:
        reached: Counter[str] = Counter()
        for point, found in _runs(turn, fault):
            result.histories += 1
            result.found += found
            reached[point.method] += 1
        result.points = max(result.points, reached, key=Counter.total)
    return result


def _runs(turn: Turn, fault: Fault) -> Iterator[tuple[Point, list[Violation]]]:
    for number in range(1, POINTS_MAX):
        point = Point(number, fault)
        found = run_point(turn, point)
        if not point.method:
            return
        yield point, found
    raise AssertionError(f"the turn made {POINTS_MAX} calls")


def run_point(turn: Turn, point: Point) -> list[Violation]:
    """Run the turn once; return every promise that it broke."""
    world = World(turn.stores, turn.mode, point.plan, turn.plot)
    try:
        history = run_with_io(world.run())
    except AssertionError as stuck:  # a deadlock, too, or time without end
        found = [Violation(Kind.OTHER, f"it never ended: {stuck}")]
    else:
        found = [*world.seen.found, *violations(history), *_incomplete(history)]
    return [Violation(v.kind, f"{turn.name}, {point}: {v.text}") for v in found]


def _incomplete(history: History) -> Iterator[Violation]:
    """One failed call costs nobody the end of the turn."""
    events = history.events()
    outcome = events[-1].data if events[-1].type == "done" else events[-1].type
    # A stop that reaches the runtime too late stops no more than what is left: there is no promise.
    wanted = ('"cancelled"', '"completed"') if history.cancels else ('"completed"',)
    if not any(word in outcome for word in wanted):
        yield Violation(Kind.OTHER, f"the turn ended otherwise: {outcome}")
    for client in history.clients:
        if [event.seq for event in client.screen()] != [event.seq for event in events]:
            yield Violation(Kind.LOST, f"{client.name} does not show the whole log")


async def crash_points(plan: Plan) -> list[Tally]:
    """Enumerate a turn of every plot on the plan's store and in its mode; return one row.

    In a thread: virtual time needs a loop of its own.
    """
    return [await asyncio.to_thread(_row, plan)]


def _row(plan: Plan) -> Tally:
    plan.folder.mkdir(parents=True, exist_ok=True)
    stores = sqlite(plan.folder) if plan.store == "sqlite" else firestore(plan.emulator)
    whole = Enumeration()
    for plot in PLOTS:
        part = enumerate_points(Turn(stores=stores, mode=plan.mode, plot=plot))
        plan.tell(f"{plan.name}: a turn that {plot}: {dict(part.points)}")
        whole.add(part)
    fault = f"each of {whole.points.total()} calls fails in {len(FAULTS)} ways ({plan.name})"
    row = Tally("crash points", fault, count=whole.histories, histories=whole.histories)
    row.accuse(whole.found)
    return row
