"""Edge processes: the production registry, booted, killed, paused, drained, called over a network.

Knows nothing of who calls. Every boot is a new process with a new writer id; what an older one still has
under way reaches nobody but the store, and that only if it was sent before. All in virtual time.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from edge.core.errors import EdgeError, Unavailable
from edge.ports import Journal, Runtime
from edge.sessions.registry import Registry
from edge.sessions.settings import SessionSettings
from tests.simulation.loop import Process, simulated
from tests.simulation.runtime import RuntimeLink
from tests.simulation.weather import Weather
from tests.support.house import frame

T = TypeVar("T")

DRAIN_SECONDS = 9.0


class NoAnswer(Exception):
    """The edge did not answer; the call may or may not have happened."""


class SkewedClock:
    """A machine's own idea of the time of day."""

    def __init__(self, skew_seconds: float) -> None:
        self._skew_ms = int(skew_seconds * 1000)

    def now_ms(self) -> int:
        seconds = asyncio.get_running_loop().time()
        return 1_800_000_000_000 + self._skew_ms + int(seconds * 1000)


class Counting:
    """Telemetry that adds up over all edges."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather

    def count(self, name: str) -> None:
        self._weather.counts[name] += 1

    def gauge(self, name: str, value: float) -> None:
        """Nothing here asks for the present."""


class Edge:
    """One place where an edge process runs, time after time."""

    def __init__(
        self,
        name: str,
        weather: Weather,
        *,
        journal: Journal,
        link: Callable[[], RuntimeLink],
        settings: SessionSettings,
        skew_seconds: float,
    ) -> None:
        self.name = name
        self._weather = weather
        self._journal = journal
        self._make_link = link
        self._settings = settings
        self._clock = SkewedClock(skew_seconds)
        self._boots = itertools.count(1)
        self._hang_ups: dict[Callable[[], None], None] = {}
        self.boot()

    @property
    def up(self) -> bool:
        return self.process.running

    @property
    def condition(self) -> str:
        """Return how the place is, in one word."""
        if not self.process.alive:
            return "dead"
        if not self.process.running:
            return "paused"
        return "draining" if self.registry.draining else "living"

    def boot(self) -> None:
        """Start a new process."""
        boot = next(self._boots)
        self.writer = f"{self.name}#{boot}"
        self.process = Process(simulated(), self.writer)
        self._link = self._make_link()
        self.registry = self.process.within(self._registry, self._link)

    def _registry(self, runtime: Runtime) -> Registry:
        return Registry(
            journal=self._journal,
            runtime=runtime,
            clock=self._clock,
            telemetry=Counting(self._weather),
            settings=self._settings,
            encode=frame,
            chance=random.Random(self._weather.chance.random()),
            writer=self.writer,
        )

    def kill(self) -> None:
        """kill -9: everything of it stops at once, and a new process takes its place."""
        if not self.process.alive:
            return
        self.process.kill()
        self._link.hang_up()
        for hang_up in self._hang_ups:
            self._weather.loop.later(self._weather.chance.uniform(0.0, 2.0), hang_up)
        self._hang_ups.clear()
        self._weather.loop.later(self._weather.chance.uniform(0.1, 5.0), self.boot)

    def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        self.process.pause()
        self._weather.loop.later(seconds, self.process.resume)

    def roll(self) -> None:
        """SIGTERM: it drains and exits; whatever is left then dies with it."""
        process = self.process

        async def leave() -> None:
            await self.registry.drain(DRAIN_SECONDS)
            await asyncio.sleep(0.5)
            self._weather.loop.later(0.0, lambda: self.kill() if self.process is process else None)

        process.spawn(leave())

    def on_hang_up(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have ``call`` made when the process dies; return what forgets it."""
        self._hang_ups[call] = None
        return lambda: self._hang_ups.pop(call, None)

    async def ask(self, work: Callable[[Registry], Awaitable[T]], *, patience: float) -> T:
        """Make one call over the network.

        Raises:
            NoAnswer: it was lost, or the answer was, or it took too long.
            EdgeError: the edge's own answer.
        """
        weather, process, registry = self._weather, self.process, self.registry
        reply: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def serve() -> None:
            try:
                result = await work(registry)
            except EdgeError as error:
                refusal = error
                weather.answer(lambda: None if reply.done() else reply.set_exception(refusal))
            else:
                weather.answer(lambda: None if reply.done() else reply.set_result(result))

        if not weather.hit(weather.loss):
            weather.loop.later(weather.latency(), lambda: process.spawn(serve()))
        try:
            async with asyncio.timeout(patience):
                return await reply
        except TimeoutError:
            raise NoAnswer from None

    async def insist(self, work: Callable[[Registry], Awaitable[T]]) -> T | None:
        """Make one call; ``None`` if it should be tried again, there or elsewhere.

        Raises:
            EdgeError: what no second try would mend.
        """
        try:
            return await self.ask(work, patience=12.0)
        except (NoAnswer, Unavailable):
            return None
