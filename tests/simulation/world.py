"""One run: a world drawn from a seed, its accidents, its end, and what the judge says of it.

Knows nothing of how runs are chosen. All time is virtual time; a run is a function of its seed and of the code
under test alone.
"""

from __future__ import annotations

import asyncio
import random

from edge.core.event import SUSPENDED
from edge.core.patience import WriterSettings
from edge.ports import AttemptCall
from edge.sessions.settings import SessionSettings
from tests.simulation.browser import Browser
from tests.simulation.edges import Edge
from tests.simulation.judge import Judge
from tests.simulation.loop import SimulatedLoop
from tests.simulation.people import Crowd
from tests.simulation.runtime import RuntimeLink, RuntimeProcess
from tests.simulation.script import Playwright
from tests.simulation.store import Store, StoreLink
from tests.simulation.weather import LATEST_SECONDS, Outage, draw_weather
from tests.support.history import Kind
from tests.support.house import UID

EDGES = ("A", "B", "C")
SESSION = "session"
PATIENCE_SECONDS = 150.0
"""How long after the last fault everything may take to come to rest: the longest pause, a lease, and
two slow turns."""


class World:
    """Everything of one run."""

    def __init__(self, seed: int, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.chance = random.Random(f"{seed}/world")
        self.weather = draw_weather(loop, random.Random(f"{seed}/weather"), list(EDGES))
        self._draw_storm(random.Random(f"{seed}/storm"))
        self._draw_echoes(random.Random(f"{seed}/echo"))
        deserted = self._draw_desertion(random.Random(f"{seed}/desertion"))
        self.store = Store(_StoreClock(loop))
        self.store.on_acquire = self._count_takeover
        self.judge = Judge(self.store)
        self.ages = self.chance.random() < 0.05
        """Whether the session lives so long that its beginning expires."""
        self._stall_seconds = random.Random(f"{seed}/stall").uniform(305.0, 330.0)
        """How long somebody who watches an ageing session reads nothing: what comes next expires."""
        self._blackouts = random.Random(f"{seed}/blackouts")
        self._suspends = self.chance.random() < 0.25
        self._settings = self._draw_settings()
        self._accidents = self.chance.choice((0.0, 0.05, 0.2))
        self._plays = Playwright(str(seed), self.weather, accidents=self._accidents)
        self._shared = self.chance.random() < 0.5
        self.runtimes: dict[str, RuntimeProcess] = {}
        for name in ("R1", "R2") if self._shared else EDGES:
            self._boot_runtime(name)
        self.edges = [self._edge(name) for name in EDGES]
        self.browsers = [
            self._browser(f"browser{n}", stall_seconds=self._stall_seconds * (self.ages and not n))
            for n in range(self.chance.randint(2, 4))
        ]
        self.weather.counts["browsers"] = len(self.browsers)
        self.crowd = Crowd(
            loop=loop,
            chance=random.Random(f"{seed}/people"),
            session_id=SESSION,
            store=self.store,
            judge=self.judge,
            choose=self._any_edge,
            counts=self.weather.counts,
            answers=self.chance.random() < 0.8,
            ends_alone=0.8 if deserted else 0.2,
        )

    def _draw_storm(self, chance: random.Random) -> None:
        """Make a few runs so bad that an owner is often robbed before it knows that it is one."""
        if chance.random() < 0.08:
            self.weather.loss, self.weather.lies = 0.25, 0.7

    def _draw_echoes(self, chance: random.Random) -> None:
        """Let a commit reach the store twice now and then, in some runs."""
        if chance.random() < 0.25:
            self.weather.echoes = chance.choice((0.05, 0.3))

    def _draw_desertion(self, chance: random.Random) -> bool:
        """Decide whether everybody stops watching for a while, longer than a turn may have to bear."""
        if chance.random() > 0.15:
            return False
        begins = chance.uniform(0.5, 10.0)
        self.weather.deserted = (begins, begins + 15.0)
        return True

    def _draw_settings(self) -> SessionSettings:
        retention_ms = 300_000 if self.ages else 24 * 3600 * 1000
        writer = WriterSettings(ttl_seconds=10.0, retention_ms=retention_ms)
        tail_limit_bytes = self.chance.choice((1_500, 1024 * 1024))
        return SessionSettings(
            writer=writer,
            tail_limit_bytes=1_500 if self.ages else tail_limit_bytes,
            batch_limit_bytes=self.chance.choice((400, 64 * 1024)),
            page_records=self.chance.choice((2, 100)),
            stream_life_seconds=self.chance.choice((20.0, 600.0)),
            disconnect_grace_seconds=5.0,
            idle_room_seconds=self.chance.choice((5.0, 60.0)),
        )

    def _boot_runtime(self, name: str) -> None:
        self.runtimes[name] = RuntimeProcess(
            self.loop, name, lambda _: self._plays.play, self.judge.tool_ran
        )

    def _edge(self, name: str) -> Edge:
        skew_seconds = 0.0 if self.ages else self.chance.choice((0.0, 0.0, 3600.0, -3600.0))
        return Edge(
            name,
            self.weather,
            journal=StoreLink(self.store, self.weather, name),
            link=lambda: self._link(name),
            settings=self._settings,
            skew_seconds=skew_seconds,
        )

    def _link(self, edge: str) -> RuntimeLink:
        """A runtime beside each edge, or two for all behind a balancer that sticks to a turn or not."""
        misses = self._shared and self.chance.random() < 0.3

        def choose() -> RuntimeProcess:
            if not self._shared:
                return self.runtimes[edge]
            if misses and self.weather.rough:
                return self.runtimes[self.chance.choice(("R1", "R2"))]
            return self.runtimes["R1"]

        return RuntimeLink(
            self.weather,
            choose,
            suspends=self._suspends,
            on_start=lambda call: self._begun(edge, call),
        )

    def _begun(self, edge: str, call: AttemptCall) -> None:
        self.weather.counts["attempts_in_suspend_mode"] += self._suspends
        self.judge.attempt_asked_for(edge, call)

    def _browser(self, name: str, stall_seconds: float = 0.0) -> Browser:
        return Browser(
            name,
            SESSION,
            self.weather,
            self.judge,
            choose=self._any_edge,
            chance=self.chance,
            stall_seconds=stall_seconds,
        )

    def _any_edge(self) -> Edge:
        return self.chance.choice(self.edges)

    # --- accidents ------------------------------------------------------------------------------------

    async def _accident(self) -> None:
        """Let one thing happen to somebody."""
        kinds = ("kill", "kill", "pause", "pause", "roll", "runtime")
        kind = self.chance.choice(kinds)
        edge = self._any_edge()
        self.weather.counts[f"{kind}s"] += 1
        match kind:
            case "kill":
                self._kill(edge)
            case "pause":
                edge.pause(self.chance.choice((1.0, 5.0, 15.0, 40.0)))
            case "roll":
                edge.roll()
            case _:
                self._trouble_runtime()

    def _kill(self, edge: Edge) -> None:
        edge.kill()
        if not self._shared:
            self._kill_runtime(edge.name)

    def _trouble_runtime(self) -> None:
        name = self.chance.choice(list(self.runtimes))
        if self.chance.random() < 0.5:
            self._kill_runtime(name)
            return
        self.weather.counts["runtime_pauses"] += 1
        process = self.runtimes[name].process
        process.pause()
        self.loop.later(self.chance.choice((2.0, 8.0, 25.0)), process.resume)

    def _kill_runtime(self, name: str) -> None:
        self.weather.counts["runtime_kills"] += 1
        self.runtimes[name].kill()
        self._boot_runtime(name)

    async def _trouble(self) -> None:
        for _ in range(self.chance.randint(0, 6)):
            await asyncio.sleep(self.chance.expovariate(1 / 5))
            if not self.weather.rough:
                return
            await self._accident()

    async def _black_out(self) -> None:
        """Let the owner show what it can never commit, and kill it then, or let it sleep too long."""
        chance = self._blackouts
        for _ in range(2):
            await asyncio.sleep(chance.uniform(0.5, 8.0))
            owner = next((edge for edge in self.edges if edge.writer == self.store.holder), None)
            if owner is None or not owner.up or not self.weather.rough:
                continue
            self.weather.counts["blackouts"] += 1
            begins = self.loop.time()
            self.weather.outages.append(Outage(begins, begins + 5.0, owner.name))
            await asyncio.sleep(chance.uniform(0.5, 5.0))
            if chance.random() < 0.5:
                self._kill(owner)
            else:
                owner.pause(20.0)

    def _count_takeover(self, writer: str) -> None:
        """Note in which state whoever loses a running turn is: a living owner loses it for nothing."""
        newest, holder = self.store.newest(), self.store.holder
        if newest is None or newest.type == SUSPENDED or newest.subject in self.store.ended:
            return
        edge = next((edge for edge in self.edges if edge.writer == holder), None)
        if writer != holder:
            condition = edge.condition if edge is not None else "dead"
            self.weather.counts[f"takeovers_of_the_{condition}"] += 1

    # --- the run --------------------------------------------------------------------------------------

    async def live(self) -> None:
        """Live from the first POST to the moment when everything has come to rest."""
        await self.store.create_session(SESSION, UID)
        self.loop.spawn_outside(self._trouble())
        if self._blackouts.random() < 0.2:  # where there are none, a seed stays the run it was
            self.loop.spawn_outside(self._black_out())
        for browser in self.browsers:
            self.loop.spawn_outside(browser.live())
        using = self.loop.spawn_outside(self.crowd.use(self._gaps()))
        aged = 400.0 if self.ages else 0.0
        deadline = self.weather.rough_seconds + PATIENCE_SECONDS + aged
        try:
            async with asyncio.timeout_at(deadline):
                await using
                while self.weather.rough or not self._at_rest():
                    await asyncio.sleep(0.5)
        except TimeoutError:
            self.judge.accuse(Kind.LOST, f"not at rest {PATIENCE_SECONDS} s after the last fault")
            return
        await self._let_everything_land()

    def _gaps(self) -> list[float]:
        if self.ages:
            return [0.0, 190.0, 150.0]
        return [0.0, *(self.chance.uniform(0.0, 4.0) for _ in range(self.chance.randint(0, 2)))]

    def _at_rest(self) -> bool:
        newest = self.store.newest()
        if newest is None or self.crowd.acting:
            return False
        waits = (
            self.crowd.question() is not None and self.store.newest_turn not in self.store.cancelled
        )
        return (waits or newest.subject in self.store.ended) and all(
            browser.screen.shown and browser.screen.shown[-1].seq == newest.seq
            for browser in self.browsers
        )

    async def _let_everything_land(self) -> None:
        """Whatever is late has arrived by then, and must have changed nothing."""
        now_ms = _StoreClock(self.loop).now_ms()
        expired = sum(record.expire_at_ms <= now_ms for record in self.store.records.values())
        self.weather.counts["records_expired"] += expired
        before = self.store.last_seq
        late = self.weather.rough_seconds + LATEST_SECONDS + 1.0 - self.loop.time()
        await asyncio.sleep(max(late, 0.0))
        if self.store.last_seq != before:
            self.judge.accuse(
                Kind.OTHER, f"the log grew from {before} to {self.store.last_seq} after the end"
            )
        newcomer = self._browser("newcomer")
        reading = self.loop.spawn_outside(newcomer.live())
        async with asyncio.timeout(60.0):
            while not newcomer.screen.shown or newcomer.screen.shown[-1].seq != self.store.last_seq:
                await asyncio.sleep(0.1)
        reading.cancel()


class _StoreClock:
    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return 1_800_000_000_000 + int(self._loop.time() * 1000)
