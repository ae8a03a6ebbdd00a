"""Takes the store out of the edges' reach for a while, with sessions in every phase of a turn.

Knows nothing of how an edge gets over it. All phases are there at the same time, several sessions each, watched
at the owner's edge and at another one; so a long outage is waited for once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from edge.core.event import SUSPENDED, TOOL_END, TOOL_START
from tests.campaigns.browser import REAL_TIMINGS, Balancer, Browser
from tests.campaigns.plan import Plan
from tests.campaigns.tally import Tally
from tests.faults.asking import Asker, insist
from tests.faults.client import Moment, saw
from tests.faults.scene import Node, Scene, Step
from tests.faults.users import pass_time
from tests.support.history import Kind, Violation
from tests.support.http_client import PATIENCE_SECONDS, Answer
from tests.support.processes import POLL_SECONDS
from tests.support.toxics import Down

EDGES = 2
PER_PHASE = 2
WORD_MS = 100
AFTERWARDS_SECONDS = 90.0
"""Within which everything is over, once the store is back."""
TTL_SECONDS = float(REAL_TIMINGS["EDGE_TTL_SECONDS"])
NOTE: Step = {"tool": "append_note", "args": {"text": "once"}}


TEXT_SECONDS_MAX = 9.0
"""Text that is lost with its owner is said again, so it need not be as long as a long outage."""


def _text(seconds: float) -> Step:
    return {"say": "word", "words": int(seconds * 1000 / WORD_MS), "word_ms": WORD_MS}


class Deed(Enum):
    """What the user does while the store is away."""

    NOTHING = "nothing"
    POST = "asks"
    RESOLVE = "answers"
    STOP = "stops"


@dataclass(frozen=True, slots=True)
class Phase:
    """Where in its turn a session is when the store goes."""

    name: str
    steps: Callable[[float], Sequence[Step]]
    """Of a turn, given how long the store will be away."""
    ready: Moment
    deed: Deed = Deed.NOTHING
    writes: bool = True
    """Whether its owner has something to write, whatever the user does."""


PHASES = (
    Phase("before the POST", lambda _: (_text(1), NOTE), lambda _: True, Deed.POST, writes=False),
    Phase(
        "in the middle of text",
        lambda away: (_text(min(away + 4, TEXT_SECONDS_MAX)), NOTE),
        saw("token", 3),
    ),
    Phase("at the gate", lambda _: (_text(3), NOTE, _text(1)), saw("token")),
    Phase(
        "in a tool that ends meanwhile",
        lambda _: ({"sleep_tool": 3, "safety": "idempotent"}, NOTE, _text(1)),
        saw(TOOL_START),
    ),
    Phase(
        "in a tool that outlasts it",
        lambda away: ({"sleep_tool": away + 4, "safety": "unsafe"}, NOTE, _text(1)),
        saw(TOOL_START),
        writes=False,  # progress may be shown ahead of the log, so nothing need be late
    ),
    Phase("behind a tool", lambda _: (NOTE, _text(3), NOTE, _text(1)), saw(TOOL_END)),
    Phase(
        "when a person is asked",
        lambda _: ({"ask": "Go on?"}, NOTE, _text(1)),
        saw(SUSPENDED),
        Deed.RESOLVE,
        writes=False,
    ),
    Phase(
        "when it is stopped",
        lambda away: (_text(min(away + 4, TEXT_SECONDS_MAX)), NOTE),
        saw("token", 3),
        Deed.STOP,
    ),
    Phase("at the end", lambda _: (_text(3),), saw("token")),
)


class Way(Enum):
    """How the store is out of reach."""

    LOCKED = "locked"
    """Another process holds the write lock of the file."""
    SILENT = "silent"
    """Nothing is carried, and nobody is told."""
    DOWN = "down"
    """Connections are cut and refused."""
    SILENT_FOR_ONE = "silent for one edge"

    def strikes(self, scene: Scene) -> list[Node]:
        """Return the edges that it cuts off."""
        return scene.nodes[:1] if self is Way.SILENT_FOR_ONE else scene.nodes


WAYS = {"sqlite": (Way.LOCKED,), "firestore": (Way.SILENT, Way.DOWN, Way.SILENT_FOR_ONE)}
"""The ways of each store; a campaign's cycles take them in turn, its seed says where they begin."""


@asynccontextmanager
async def away(scene: Scene, way: Way) -> AsyncIterator[None]:
    """Take the store out of reach."""
    if way is Way.LOCKED:
        with scene.store_out_of_reach(scene.nodes[0]):
            yield
        return
    wires = [node.store_wire for node in way.strikes(scene) if node.store_wire is not None]
    for wire in wires:
        wire.strike(Down()) if way is Way.DOWN else wire.stall()
    try:
        yield
    finally:
        for wire in wires:
            await wire.heal()


@dataclass(slots=True)
class Sitting:
    """One session in one phase: its user, and two tabs at two edges."""

    phase: Phase
    at: int
    """Index of the edge that owns it."""
    steps: Sequence[Step]
    tabs: list[Browser]
    asker: Asker
    refused: int = 0
    """How often the user's deed was answered 503."""

    @property
    def turn_id(self) -> str:
        return self.asker.posts[0][1]


@dataclass(slots=True)
class Outage:
    """One outage of one scene."""

    scene: Scene
    way: Way
    seconds: float
    plan: Plan
    tally: Tally
    sittings: list[Sitting] = field(default_factory=list)

    async def stage(self) -> None:
        """Bring every session into its phase, take the store away, and wait for all to end."""
        self.tally.count += 1
        self.sittings = await asyncio.gather(*self._seats())
        following: list[asyncio.Task[bool]] = []
        for sitting in self.sittings:
            if sitting.phase.deed is not Deed.POST:
                await sitting.asker.ask(sitting.steps)
                following += self._follow(sitting)
        await asyncio.gather(*(self._ready(sitting) for sitting in self.sittings))
        async with away(self.scene, self.way):
            deeds = [asyncio.create_task(self._act(sitting)) for sitting in self.sittings]
            await pass_time(self.seconds)
            self._expect_word()
        await asyncio.gather(*deeds)
        for sitting in self.sittings:
            if sitting.phase.deed is Deed.POST:
                following += self._follow(sitting)
        await asyncio.gather(*following)
        await self._judge()

    def _seats(self) -> list[asyncio.Task[Sitting]]:
        return [
            asyncio.create_task(self._seat(phase, (number + copy) % EDGES))
            for number, phase in enumerate(PHASES)
            for copy in range(PER_PHASE)
        ]

    async def _seat(self, phase: Phase, at: int) -> Sitting:
        # The outage before this one may not be over for every edge.
        near = self._near(at).choice
        answer = await insist(near, "/v1/sessions", {}, seconds=AFTERWARDS_SECONDS)
        session_id = answer.json["session_id"]
        asker = Asker(
            scene=self.scene,
            session_id=session_id,
            choose=near,
            patience_seconds=self.seconds + AFTERWARDS_SECONDS,
        )
        tabs = [Browser(session_id), Browser(session_id)]
        sitting = Sitting(phase, at, phase.steps(self.seconds), tabs, asker)
        asker.note = partial(self._note, sitting)
        return sitting

    def _note(self, sitting: Sitting, came: object) -> None:
        """An edge without a store says so, and in time."""
        if isinstance(came, Answer):
            sitting.refused += 1
        else:
            self._accuse(sitting, f"no answer: {came!r}")

    async def _ready(self, sitting: Sitting) -> None:
        async with asyncio.timeout(AFTERWARDS_SECONDS):
            while not sitting.phase.ready(sitting.tabs[0]):
                await asyncio.sleep(POLL_SECONDS)

    # --- what users do ------------------------------------------------------------------------------

    async def _act(self, sitting: Sitting) -> None:
        match sitting.phase.deed:
            case Deed.POST:
                await sitting.asker.ask(sitting.steps)
            case Deed.RESOLVE:
                shown = sitting.tabs[0].screen[-1]
                (call_id,) = json.loads(shown.data)["pending_call_ids"]
                target = f"/turns/{sitting.turn_id}/tool-calls/{call_id}"
                answer = await sitting.asker.insist(target, {"result": "yes"})
                assert answer.status == 202, answer
            case Deed.STOP:
                await sitting.asker.stop(sitting.turn_id)
            case Deed.NOTHING:
                pass

    def _follow(self, sitting: Sitting) -> list[asyncio.Task[bool]]:
        limit = self.seconds + AFTERWARDS_SECONDS
        return [
            asyncio.create_task(
                tab.follow_behind(self._near((sitting.at + n) % EDGES), seconds=limit)
            )
            for n, tab in enumerate(sitting.tabs)
        ]

    def _near(self, at: int) -> Balancer:
        """Return a balancer that stays with an edge, so that the outage is met where it is."""
        return Balancer(lambda: [self.scene.ports[at]], self.plan.chance())

    # --- judgement ----------------------------------------------------------------------------------

    def _struck(self, sitting: Sitting) -> bool:
        return self.scene.nodes[sitting.at] in self.way.strikes(self.scene)

    def _expect_word(self) -> None:
        """P-SSE-14, P-HTTP-15: by now whoever waits for the store was told so, or was sent away."""
        if self.seconds <= PATIENCE_SECONDS:
            return  # it may not be noticed yet: a call has its own patience
        for sitting in self.sittings:
            tab = sitting.tabs[0]
            if not self._struck(sitting):
                continue
            if sitting.phase.writes and "status" not in tab.told and not tab.ends:
                self._accuse(sitting, "its reader was told nothing")
            if sitting.phase.deed is not Deed.NOTHING and not sitting.refused:
                self._accuse(sitting, "its user was told nothing")

    def _accuse(self, sitting: Sitting, text: str) -> None:
        self.tally.accuse(
            [Violation(Kind.OTHER, f"{self.way.value}, {sitting.phase.name}: {text}")]
        )

    async def _judge(self) -> None:
        for sitting in self.sittings:
            for number, tab in enumerate(sitting.tabs):
                tab.log.name = f"{self.way.value}, {sitting.phase.name}, tab {number + 1}"
                if not tab.finished:
                    self._accuse(sitting, f"it never ended: {tab.types[-3:]} {tab.told}")
                brief = self.seconds < TTL_SECONDS
                if brief and {"rewind", "reset"} & {*tab.told}:
                    self._accuse(sitting, f"shorter than the lease, and yet {tab.told}")
            self.tally.judge(
                await self.scene.history(*sitting.tabs, over=True, **sitting.asker.answers)
            )


async def outage(plan: Plan, seconds: float) -> list[Tally]:
    """Take the store away ``plan.cycles`` times; return a row for all edges, and one for the owner only."""
    rows: dict[str, Tally] = {}
    async with plan.scene() as scene:
        await scene.set(EDGES, shape="shared", wired=True, **{**plan.settings(), **REAL_TIMINGS})
        ways = WAYS[plan.store]
        for cycle in range(plan.cycles):
            way = ways[(plan.seed + cycle) % len(ways)]
            who = "from one edge, " if way is Way.SILENT_FOR_ONE else ""
            fault = f"store away {who}{seconds:g} s ({plan.name})"
            tally = rows.setdefault(fault, Tally("processes", fault))
            await Outage(scene, way, seconds, plan, tally).stage()
            plan.tell(f"{fault}, {way.value}: {cycle + 1} of {plan.cycles}")
    return list(rows.values())
