"""The weather of one run: how slow and lossy every link is, and who is cut off when.

Knows nothing of what travels. All chance of the links comes from here, drawn from the run's seed.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tests.simulation.loop import SimulatedLoop

T = TypeVar("T")

GIVE_UP_SECONDS = 2.0
"""After which a caller takes a call for lost, as the stores' clients do."""
TICK_SECONDS = 1e-6
"""What keeps two things in order that travel down one connection."""
LATEST_SECONDS = 25.0
"""How late a request may still arrive."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which the store cannot be reached."""

    begins: float
    ends: float
    edge: str
    """Which edge is cut off; empty for all."""


@dataclass(slots=True)
class Weather:
    """Faults of the links while it is rough; once it is calm there are none."""

    loop: SimulatedLoop
    chance: random.Random
    rough_seconds: float
    loss: float
    repeats: float
    lies: float
    """How often a look at the head makes a living owner appear dead."""
    echoes: float = 0.0
    """How often a commit reaches the store twice at once, and only the second answer comes back."""
    outages: list[Outage] = field(default_factory=list)
    deserted: tuple[float, float] = (math.inf, math.inf)
    """When nobody watches: from when, until when."""
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def rough(self) -> bool:
        return self.loop.time() < self.rough_seconds

    def hit(self, probability: float) -> bool:
        """Whether a fault of this probability strikes now."""
        return self.rough and self.chance.random() < probability

    def deserts_in(self) -> float:
        """Return after how many seconds everybody leaves; infinite if nobody will."""
        ahead = self.deserted[0] - self.loop.time()
        return ahead if ahead > 0 else math.inf

    def deserted_for(self) -> float:
        """Return for how many seconds nobody will come; zero at other times."""
        begins, ends = self.deserted
        now = self.loop.time()
        return ends - now if begins <= now < ends else 0.0

    def cut_off(self, edge: str) -> bool:
        now = self.loop.time()
        return any(o.begins <= now < o.ends and o.edge in ("", edge) for o in self.outages)

    def latency(self) -> float:
        if not self.hit(0.02):
            return self.chance.uniform(0.002, 0.06)
        self.counts["ways_slow"] += 1
        return self.chance.uniform(0.2, 1.5)

    def echo(self) -> bool:
        """Whether the store gets a commit twice; asked only where it may, so that no seed changes."""
        return self.echoes > 0 and self.hit(self.echoes)

    def late(self) -> float:
        return self.chance.uniform(0.0, LATEST_SECONDS)

    def carry(
        self,
        call: Callable[[], object],
        *,
        cut_off: bool = False,
        repeatable: bool = False,
        lost: Callable[[], None],
    ) -> None:
        """Bring one request to its goal, perhaps: late, twice, or not at all.

        ``call`` makes it there and sends the answer back by itself; ``lost`` tells the caller that
        nobody knows. Whichever comes first counts.
        """
        if cut_off or self.hit(self.loss):
            self.counts["requests_cut_off" if cut_off else "requests_lost"] += 1
            if repeatable and self.chance.random() < 0.4:
                self.counts["requests_late"] += 1
                self.loop.later(self.late(), call)
            self.loop.later(self.chance.choice((0.05, GIVE_UP_SECONDS)), lost)
            return
        self.loop.later(self.latency(), call)
        self.loop.later(GIVE_UP_SECONDS, lost)
        if repeatable and self.hit(self.repeats):
            self.counts["requests_repeated"] += 1
            self.loop.later(self.late(), call)

    def answer(self, settle: Callable[[], None]) -> None:
        """Bring an answer back, unless it gets lost."""
        if self.hit(self.loss):
            self.counts["answers_lost"] += 1
            return
        self.loop.later(self.latency(), settle)


def draw_weather(loop: SimulatedLoop, chance: random.Random, edges: list[str]) -> Weather:
    """Draw the weather of one run."""
    rough_seconds = chance.choice((12.0, 25.0, 40.0))
    outages = []
    for _ in range(chance.choice((0, 0, 1, 2))):
        begins = chance.uniform(0, rough_seconds)
        ends = min(begins + chance.choice((5.0, 30.0)), rough_seconds)
        outages.append(Outage(begins, ends, chance.choice(("", *edges))))
    return Weather(
        loop,
        chance,
        rough_seconds,
        loss=chance.choice((0.0, 0.02, 0.1, 0.25)),
        repeats=chance.choice((0.0, 0.1)),
        lies=chance.choice((0.0, 0.02, 0.1)),
        outages=outages,
    )
