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

import h11

from edge.core.event import SUSPENDED, TOOL_END, TOOL_START
from tests.campaigns.browser import REAL_TIMINGS, Balancer, Browser
from tests.campaigns.plan import Plan
from tests.campaigns.tally import Tally
from tests.faults.client import Moment, saw
from tests.faults.scene import Node, Scene, Step
from tests.faults.users import pass_time
from tests.support.history import Kind, Violation
from tests.support.http_client import PATIENCE_SECONDS, Answer, post
from tests.support.processes import POLL_SECONDS
from tests.support.toxics import Down

EDGES = 2
PER_PHASE = 2
BETWEEN_TRIES_SECONDS = 0.2
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
    session_id: str
    at: int
    """Index of the edge that owns it."""
    steps: Sequence[Step]
    tabs: list[Browser]
    posts: list[tuple[str, str]] = field(default_factory=list)
    cancels: list[str] = field(default_factory=list)
    refused: int = 0
    """How often the user's deed was answered 503."""


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
                await self._ask(sitting)
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
        answer = await self._near(at).post("/v1/sessions", {}, seconds=AFTERWARDS_SECONDS)
        session_id = answer.json["session_id"]
        tabs = [Browser(session_id), Browser(session_id)]
        return Sitting(phase, session_id, at, phase.steps(self.seconds), tabs)

    async def _ready(self, sitting: Sitting) -> None:
        async with asyncio.timeout(AFTERWARDS_SECONDS):
            while not sitting.phase.ready(sitting.tabs[0]):
                await asyncio.sleep(POLL_SECONDS)

    # --- what users do ------------------------------------------------------------------------------

    async def _act(self, sitting: Sitting) -> None:
        match sitting.phase.deed:
            case Deed.POST:
                await self._ask(sitting)
            case Deed.RESOLVE:
                shown = sitting.tabs[0].screen[-1]
                (call_id,) = json.loads(shown.data)["pending_call_ids"]
                target = f"/turns/{sitting.posts[0][1]}/tool-calls/{call_id}"
                answer = await self._insist(sitting, target, {"result": "yes"})
                assert answer.status == 202, answer
            case Deed.STOP:
                turn_id = sitting.posts[0][1]
                answer = await self._insist(sitting, f"/turns/{turn_id}/cancel", {})
                sitting.cancels += [turn_id] if answer.status == 202 else []
            case Deed.NOTHING:
                pass

    async def _ask(self, sitting: Sitting) -> None:
        key = f"{sitting.session_id}-1"
        body = {"input": json.dumps(sitting.steps), "agent": "script"}
        answer = await self._insist(sitting, "/turns", body, ("Idempotency-Key", key))
        assert answer.status == 202, answer
        sitting.posts.append((key, answer.json["turn_id"]))

    async def _insist(
        self, sitting: Sitting, path: str, body: object, *headers: tuple[str, str]
    ) -> Answer:
        """Send it until somebody decides. An edge without a store says so, and in time."""
        target = f"/v1/sessions/{sitting.session_id}{path}"
        async with asyncio.timeout(self.seconds + AFTERWARDS_SECONDS):
            while True:
                try:
                    answer = await post(self.scene.ports[sitting.at], target, body, *headers)
                except (OSError, h11.RemoteProtocolError, TimeoutError) as error:
                    self._accuse(sitting, f"{path} got no answer: {error!r}")
                else:
                    if answer.status != 503:
                        return answer
                    sitting.refused += 1
                await pass_time(BETWEEN_TRIES_SECONDS)

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
                await self.scene.history(
                    *sitting.tabs, posts=sitting.posts, cancels=sitting.cancels
                )
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
