"""A browser: connects to any edge, drops, comes back with its cursor, and shows what it was told.

Knows nothing of commands. Between it and the edge is a socket that keeps order and may break at any
moment; an edge is not always told that its client has left. All in virtual time.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence

from edge.core.control import Control, Reset, Rewind
from edge.core.cursor import Cursor
from edge.core.errors import EdgeError, Unavailable
from edge.core.requests import Until
from edge.sessions.registry import Registry
from edge.sessions.tail import Shown
from edge.sessions.viewer import Viewer
from tests.simulation.edges import Edge
from tests.simulation.judge import Judge
from tests.simulation.weather import TICK_SECONDS, Weather
from tests.support.house import UID

Item = Shown | Control

NOTHING_LEFT = "204"
REFUSED = "refused"
CUT = "cut"
STALLS_BEFORE_SECONDS = 300.0
"""Whoever stalls later wakes when all has expired, and has nothing to come back to."""


class Socket:
    """One connection: items go down it in order until either end lets go."""

    def __init__(
        self, edge: Edge, weather: Weather, judge: Judge, stall: Callable[[], float]
    ) -> None:
        self._edge = edge
        self._weather = weather
        self._judge = judge
        self._stall = stall
        """Asked for how long the client reads nothing, after each thing that is sent to it."""
        self._due = 0.0
        self._open = True
        self._serving: asyncio.Task[None] | None = None
        self._process = edge.process
        self.inbox: asyncio.Queue[Sequence[Item] | str] = asyncio.Queue()
        self._forget = edge.on_hang_up(lambda: self._arrive(CUT))

    def connect(self, session_id: str, cursor: Cursor | None, until: Until) -> None:
        registry = self._edge.registry

        def accept() -> None:
            self._serving = self._process.spawn(self._serve(registry, session_id, cursor, until))

        if self._process.alive:
            self._weather.loop.later(self._weather.latency(), accept)
        else:
            self._weather.loop.later(self._weather.latency(), self._arrive, REFUSED)

    def leave(self, *, tells: bool) -> None:
        """Let go at the client's end; an edge that is not told keeps its viewer for a while."""
        self._open = False
        self._forget()
        if tells:
            self._weather.loop.later(self._weather.latency(), self._process.deliver, self._hang_up)

    def _hang_up(self) -> None:
        if self._serving is not None:
            self._serving.cancel()

    async def _serve(
        self, registry: Registry, session_id: str, cursor: Cursor | None, until: Until
    ) -> None:
        """What the web layer does with a stream, in the edge's process."""
        try:
            viewer = await registry.attach(UID, session_id, cursor, until)
        except EdgeError as error:
            if not isinstance(error, Unavailable):
                self._judge.counts[error.code] += 1
            self._send(REFUSED)
            return
        if viewer is None:
            self._send(NOTHING_LEFT)
            return
        self._judge.counts["streams_in_company"] += registry.streams > 1
        try:
            await self._pump(viewer)
        finally:
            viewer.close()
        self._send(CUT)

    async def _pump(self, viewer: Viewer) -> None:
        while (items := await viewer.next()) is not None:
            for item in items:
                if isinstance(item, Shown):
                    self._judge.shown(self._process.name, item.event)
            self._send(items)
            if self._weather.hit(0.05):
                await asyncio.sleep(self._weather.chance.uniform(0.1, 3.0))
            await self._be_held_up()

    async def _be_held_up(self) -> None:
        if seconds := self._stall():
            await asyncio.sleep(seconds)

    def _send(self, item: Sequence[Item] | str) -> None:
        loop = self._weather.loop
        self._due = max(self._due + TICK_SECONDS, loop.time() + self._weather.latency())
        loop.later(self._due - loop.time(), self._arrive, item)

    def _arrive(self, item: Sequence[Item] | str) -> None:
        if self._open:
            self.inbox.put_nowait(item)


class Browser:
    """One tab."""

    def __init__(
        self,
        name: str,
        session_id: str,
        weather: Weather,
        judge: Judge,
        *,
        choose: Callable[[], Edge],
        chance: random.Random,
        stall_seconds: float = 0.0,
    ) -> None:
        self.cursor: Cursor | None = None
        self.counts: Counter[str] = weather.counts
        self.screen = judge.screen(name)
        self._session_id = session_id
        self._weather = weather
        self._judge = judge
        self._choose = choose
        self._chance = chance
        self._stall_seconds = stall_seconds
        """For how long it once reads nothing, and stays; zero if it never does."""
        self._heard_here = 0

    async def live(self) -> None:
        """Watch for ever, over one connection after the other."""
        while True:
            end = await self._connect()
            pause = self._chance.uniform(0.3, 2.0) if end == NOTHING_LEFT else self._away()
            await asyncio.sleep(max(pause, self._weather.deserted_for()))

    def _away(self) -> float:
        """Nearly always a moment; now and then long enough for a turn to notice."""
        if self._weather.hit(0.05):
            return self._chance.uniform(8.0, 20.0)
        return self._chance.uniform(0.05, 1.0)

    async def _connect(self) -> str:
        socket = Socket(self._choose(), self._weather, self._judge, self._stall)
        self._heard_here = 0
        until: Until = self._chance.choice(("turn_end", "turn_end", "follow"))
        socket.connect(self._session_id, self.cursor, until)
        try:
            stay = 0.2 + self._chance.expovariate(1 / 8) + self._stall_seconds
            async with asyncio.timeout(min(stay, self._weather.deserts_in())):
                while not isinstance(items := await socket.inbox.get(), str):
                    for item in items:
                        self._obey(item)
            return items
        except TimeoutError:
            self.counts["client_drops"] += 1
            return CUT
        finally:
            socket.leave(tells=self._chance.random() < 0.9)

    def _stall(self) -> float:
        store, now = self._judge.store, self._weather.loop.time()
        untimely = self._weather.rough or now > STALLS_BEFORE_SECONDS
        if untimely or not self._stall_seconds or store.newest_turn in store.ended:
            return 0.0
        self.counts["long_stalls"] += 1
        seconds, self._stall_seconds = self._stall_seconds, 0.0
        return seconds

    def _obey(self, item: Item) -> None:
        if isinstance(item, Shown):
            self._heard_here += 1
            self.cursor = Cursor(item.event.epoch, item.event.seq)
            self.screen.hear(item.event)
        elif isinstance(item, Rewind):
            self.counts["rewinds"] += 1
            self.cursor = item.to
            self.screen.rewind(item.to.seq)
        elif isinstance(item, Reset):
            self.counts[f"resets_{item.reason}"] += 1
            self.counts["resets_under_a_viewer"] += self._heard_here > 0
            self.cursor = None if item.first_seq <= 1 else Cursor(0, item.first_seq - 1)
            self.screen.clear(item.first_seq)
