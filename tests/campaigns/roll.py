"""Rolls edges one after the other under live streams, and measures what their readers notice.

Knows nothing of how an edge drains. A roll is what a deploy does: a replacement is started, and once it is ready
the old edge is told to stop; in the shape ``own`` its runtime with it, as two containers of one instance.
"""

from __future__ import annotations

import asyncio
import json
import signal
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic

from edge.core.event import TERMINAL, TOOL_END, TOOL_START
from tests.campaigns.browser import REAL_TIMINGS, Balancer, Browser
from tests.campaigns.plan import Plan
from tests.campaigns.tally import Tally, total
from tests.faults.asking import Asker, insist
from tests.faults.scene import Node, Scene, Shape, Step
from tests.faults.users import pass_time
from tests.support.history import History, Kind, Violation
from tests.support.http_client import ask
from tests.support.processes import POLL_SECONDS, Child

STREAMS = 50
EDGES = 3
WORD_MS = 100
TURNS_PER_SESSION = 2
TEXT = {"say": "word", "words": 40, "word_ms": WORD_MS}
STEADY: Sequence[Step] = (TEXT,) * 5
WITH_TOOLS: Sequence[Step] = (
    TEXT,
    {"tool": "append_note", "args": {"text": "first"}},
    TEXT,
    {"sleep_tool": 1, "safety": "unsafe"},
    TEXT,
    {"tool": "append_note", "args": {"text": "last"}},
)
TOOL_USERS_EVERY = 5
TURN_SECONDS = 90.0
"""Within which a turn is over, whatever rolls meet it."""
EXIT_SECONDS = 10.0
"""What a platform gives a process that is told to stop."""
EMULATED_ROLLS = 4
"""Before a scene on Firestore ends. Its emulator answers a query by going through all that it holds of a project, so
that an edge that leaves after many rolls would measure the emulator."""
SETTLE_SECONDS = 1.0
"""After a roll, so that the next one meets readers who are back."""


@dataclass(frozen=True, slots=True)
class Window:
    """One roll, by the monotonic clock: from the start of the replacement to the last exit, and a little on."""

    begin: float
    end: float
    watching: frozenset[str]
    """Sessions whose stream was on the edge that was told to stop."""


@dataclass(slots=True)
class Reader:
    """One session with its one tab, and what was answered."""

    browser: Browser
    asker: Asker


@dataclass(slots=True)
class Rolls:
    """Rolls of one scene."""

    scene: Scene
    shape: Shape
    settings: dict[str, str]
    tally: Tally
    over: asyncio.Future[None]
    readers: list[Reader] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    leaving: list[int] = field(default_factory=list)

    def ports(self) -> list[int]:
        """Return every edge that may still accept."""
        return [*self.scene.ports, *self.leaving]

    # --- rolls --------------------------------------------------------------------------------------

    async def roll(self, index: int) -> None:
        """Replace one edge."""
        begin = monotonic()
        old = self.scene.nodes[index]
        new = await self._replacement(old)
        self.scene.nodes[index] = new
        self.leaving.append(old.port)
        watching = [reader.browser for reader in self.readers if reader.browser.port == old.port]
        before = _goodbyes(watching)
        leaving = [old.edge] + ([old.runtime] if self.shape == "own" else [])
        await asyncio.gather(*(self._stop(child) for child in leaving))
        self.leaving.remove(old.port)
        if watching and _goodbyes(watching) == before:
            self._accuse(f"none of {len(watching)} readers was told to come back")
        await pass_time(SETTLE_SECONDS)
        sessions = frozenset(browser.session_id for browser in watching)
        self.windows.append(Window(begin, monotonic(), sessions))
        self.tally.count += 1

    async def _replacement(self, old: Node) -> Node:
        runtime, runtime_port = old.runtime, old.runtime_port
        if self.shape == "own":
            runtime = self.scene.start_runtime()
            runtime_port = await runtime.port()
        edge = self.scene.start_edge(runtime_port, **self.settings)
        port = await edge.port()
        while (await ask(port, "GET", "/readyz")).status != 200:
            await asyncio.sleep(POLL_SECONDS)
        return Node(edge, port, runtime, runtime_port)

    async def _stop(self, child: Child) -> None:
        child.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(EXIT_SECONDS):
                code = await child.exit_code()
        except TimeoutError:
            child.kill()
            code = -signal.SIGKILL
        if code != 0:
            self._accuse(f"{child.name} ended with {code}: {child.tail()}")

    # --- users --------------------------------------------------------------------------------------

    async def user(self, number: int, balancer: Balancer) -> None:
        """Open one session after the other until it is over."""
        steps = WITH_TOOLS if number % TOOL_USERS_EVERY == 0 else STEADY
        while not self.over.done():
            answer = await insist(balancer.choice, "/v1/sessions", {}, seconds=TURN_SECONDS)
            reader = self._reader(answer.json["session_id"], balancer)
            self.readers.append(reader)
            for _ in range(TURNS_PER_SESSION):
                if not self.over.done():
                    await self._turn(reader, steps, balancer)

    def _reader(self, session_id: str, balancer: Balancer) -> Reader:
        asker = Asker(
            scene=self.scene,
            session_id=session_id,
            choose=balancer.choice,
            patience_seconds=TURN_SECONDS,
        )
        return Reader(Browser(session_id), asker)

    async def _turn(self, reader: Reader, steps: Sequence[Step], balancer: Balancer) -> None:
        turn_id = await reader.asker.ask(steps)
        following = asyncio.create_task(self._follow(reader.browser, turn_id, balancer))
        await asyncio.wait({following, self.over}, return_when=asyncio.FIRST_COMPLETED)
        if not following.done():
            await reader.asker.stop(turn_id)
        await following

    async def _follow(self, browser: Browser, turn_id: str, balancer: Balancer) -> None:
        def has_ended(_client: object) -> bool:
            last = browser.screen[-1:]
            return bool(last) and last[0].type in TERMINAL and turn_id in last[0].data

        if not await browser.follow_behind(balancer, seconds=TURN_SECONDS, done=has_ended):
            self._accuse(f"{turn_id} never ended: {browser.types[-3:]} {browser.told}")

    def _accuse(self, text: str) -> None:
        self.tally.accuse([Violation(Kind.OTHER, text)])

    # --- judgement ----------------------------------------------------------------------------------

    async def judge(self) -> None:
        """Judge every session, and measure every silence."""
        for reader in self.readers:
            browser = reader.browser
            history = await self.scene.history(browser, over=True, **reader.asker.answers)
            self.tally.judge(history)
            self._expect_order(browser, history)
            silent = silences(browser, self.windows)
            self.tally.gap_seconds += [silence.seconds for silence in silent]

    def _expect_order(self, browser: Browser, history: History) -> None:
        """An owner that is told to stop commits all that it has shown, and waits for running tools."""
        if {"rewind", "reset"} & {*browser.told}:
            self._accuse(f"an orderly stop took back what was shown: {browser.told}")
        ends = [json.loads(event.data) for event in history.events() if event.type == TOOL_END]
        for end in ends:
            # A stop by its user may well cut a tool short.
            if end["outcome"] == "unknown" and end["turn_id"] not in history.cancels:
                self._accuse(f"an orderly stop left a tool's outcome unknown: {end}")


def _goodbyes(browsers: Iterable[Browser]) -> int:
    """Return how often readers were told to come back."""
    return sum(browser.told.count("reconnect") for browser in browsers)


@dataclass(frozen=True, slots=True)
class Silence:
    """The longest one that a reader met in a roll."""

    seconds: float
    moved: bool
    """Its stream was on the edge that left."""
    owned: bool
    """Its turn changed hands."""


def silences(browser: Browser, windows: list[Window]) -> Iterator[Silence]:
    """Yield the longest silence of each roll that this reader had to do with.

    What is silent by itself does not count: the time after a turn, and the time inside a tool.
    """
    heard, times = list(browser.log.heard()), browser.heard_at
    for window in windows:
        first = max(bisect_left(times, window.begin) - 1, 0)
        last = min(bisect_right(times, window.end), len(times) - 1)
        steps = [
            (times[i + 1] - times[i], heard[i].epoch != heard[i + 1].epoch)
            for i in range(first, last)
            if heard[i].type not in TERMINAL and heard[i].type != TOOL_START
        ]
        moved = browser.session_id in window.watching
        owned = any(changed for _, changed in steps)
        if steps and (moved or owned):
            yield Silence(max(seconds for seconds, _ in steps), moved, owned)


async def roll(plan: Plan) -> list[Tally]:
    """Roll edges on one shared runtime, and edges that have their own; each shape half of the cycles."""
    shared = (plan.cycles + 1) // 2
    shapes: tuple[tuple[Shape, int], ...] = (("shared", shared), ("own", plan.cycles - shared))
    longest = EMULATED_ROLLS if plan.store == "firestore" else plan.cycles
    return total(
        [
            await _roll_scene(plan, shape, min(longest, cycles - done))
            for shape, cycles in shapes
            for done in range(0, cycles, longest)
        ]
    )


async def _roll_scene(plan: Plan, shape: Shape, cycles: int) -> Tally:
    fault = f"SIGTERM roll under {STREAMS} streams, {shape} runtime ({plan.name})"
    settings = {**plan.settings(), **REAL_TIMINGS}
    async with plan.scene() as scene:
        await scene.set(EDGES, shape=shape, wired=False, **settings)
        over = asyncio.get_running_loop().create_future()
        rolls = Rolls(scene, shape, settings, Tally("processes", fault), over)
        balancer = Balancer(rolls.ports, plan.chance())
        users = [asyncio.create_task(rolls.user(n, balancer)) for n in range(STREAMS)]
        await pass_time(SETTLE_SECONDS)
        for cycle in range(cycles):
            await rolls.roll(cycle % EDGES)
            plan.tell(f"{fault}: {cycle + 1} of {cycles}")
        over.set_result(None)
        await asyncio.gather(*users)
        await rolls.judge()
    return rolls.tally
