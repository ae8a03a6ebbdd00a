"""A small world in which one call fails: two edges, the real runtime service, one person, one turn.

Knows nothing of which call it is. Everything between the edges' registries and the runtime's agents is the
product's own; only HTTP and gRPC's transport are left out. All in virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from agent_runtime.agent import Agent, agent
from agent_runtime.context import TurnContext
from agent_runtime.errors import ToolFailed
from agent_runtime.events import TurnRef
from agent_runtime.service import AgentRuntimeService, Limits
from agent_runtime.tools import ToolContext, tool
from edge.core.control import Reset, Rewind
from edge.core.cursor import Cursor
from edge.core.errors import Unavailable
from edge.core.event import TERMINAL, TOOL_START
from edge.core.patience import WriterSettings
from edge.ports import Journal
from edge.sessions.registry import Registry
from edge.sessions.settings import SessionSettings
from edge.sessions.tail import Shown
from edge.upstream.requests import RuntimeOptions
from tests.campaigns.crash_store import Seen, Stores, Witness
from tests.campaigns.plan import Mode
from tests.support.faulty_calls import Plan
from tests.support.faulty_journal import FaultyJournal
from tests.support.faulty_runtime import FaultyRuntime
from tests.support.history import Cleared, ClientLog, Heard, History, Rewound
from tests.support.house import UID, edge, request
from tests.support.local_channel import local_runtime
from tests.support.virtual_loop import elapse

T = TypeVar("T")
Plot = Literal["ends", "is stopped", "is stopped elsewhere"]
"""What happens to the turn. Elsewhere is an edge that follows, for a tab of its own."""

SETTINGS = SessionSettings(writer=WriterSettings(ttl_seconds=4.5))
"""A lease shorter than a late call is late, so that one may land behind a take-over."""
HOLD_SECONDS = 1.4
TOOL_SECONDS = 1.0
WORD_SECONDS = 0.1
AFTERWARDS_SECONDS = 10.0
"""Longer than anything late."""
TRIES = 60


class Gone(Exception):
    """The edge died while it was asked."""


@dataclass(slots=True)
class Ledger:
    """What the tools really did."""

    seen: Seen
    rows: list[dict[str, str]] = field(default_factory=list)
    """One for each time that the UNSAFE tool acted."""
    repeatable: list[str] = field(default_factory=list)
    """Keys that the IDEMPOTENT tool acted with."""

    def begin(self, turn: TurnRef) -> None:
        """An attempt begins (P-RUN-3)."""
        known = (turn.turn_id, turn.attempt) in self.seen.attempts
        self.seen.expect(durable=known, what=f"attempt {turn.attempt} began")

    def act(self, key: str) -> None:
        """A tool's body begins (P-RUN-4)."""
        self.seen.expect(durable=key in self.seen.tool_keys, what=f"{key} ran")


def clerk(ledger: Ledger) -> Agent:
    """Return an agent that uses two tools between two short messages."""

    @tool(replay_safety="unsafe")
    async def append_note(ctx: ToolContext) -> str:
        """Append a row; twice appends two."""
        ledger.act(ctx.idempotency_key)
        ledger.rows.append({"key": ctx.idempotency_key})
        await elapse(TOOL_SECONDS)
        return "appended"

    @tool(replay_safety="idempotent")
    async def put_note(ctx: ToolContext) -> str:
        """Put a row in its place; twice puts it there once."""
        ledger.act(ctx.idempotency_key)
        ledger.repeatable.append(ctx.idempotency_key)
        await elapse(TOOL_SECONDS)
        return "put"

    @agent(name="clerk", tools=[append_note, put_note])
    async def run(ctx: TurnContext) -> None:
        ledger.begin(ctx.turn)
        await _say(ctx, "Let ", "me ", "look.")
        for name in ("append_note", "put_note"):
            try:
                await ctx.call_tool(name, {})
            except ToolFailed:
                continue  # unknown, after a crash: the turn goes on
        await _say(ctx, "All ", "done.")

    return run


async def _say(ctx: TurnContext, *words: str) -> None:
    async with ctx.message() as message:
        for word in () if message.recorded is not None else words:
            await message.say(word)
            await elapse(WORD_SECONDS)


class Edge:
    """One edge process, which may die."""

    def __init__(
        self, seed: int, journal: Journal, service: AgentRuntimeService, mode: Mode, plan: Plan
    ) -> None:
        options = RuntimeOptions(checkpoint_mode=mode, hold_timeout_seconds=HOLD_SECONDS)
        self.journal = FaultyJournal(journal, plan)
        self.runtime = FaultyRuntime(local_runtime(service, options), plan)
        self.journal.on_death = self.runtime.on_death = self.die
        self.registry = edge(self.journal, self.runtime, SETTINGS, seed=seed)
        self.dead = asyncio.Event()
        self._burial: asyncio.Task[None] | None = None

    def die(self) -> None:
        """Let nothing out or in any more; what still ran of the process is cleared away."""
        self.journal.cut()
        self.runtime.cut()
        self.dead.set()
        self._burial = asyncio.get_running_loop().create_task(self.registry.close())

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Ask something of the process. Raises ``Gone`` if it dies meanwhile."""
        loop = asyncio.get_running_loop()
        asking, dying = loop.create_task(work), loop.create_task(self.dead.wait())
        await asyncio.wait({asking, dying}, return_when=asyncio.FIRST_COMPLETED)
        if self.dead.is_set():
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            raise Gone
        dying.cancel()
        return asking.result()

    async def close(self) -> None:
        await (self._burial or self.registry.close())


class Tab:
    """A browser tab: keeps a cursor, obeys controls."""

    def __init__(self, name: str, choose: Callable[[], Edge], seen: Seen) -> None:
        self.log = ClientLog(name)
        self.choose = choose
        self._seen = seen
        self._cursor: Cursor | None = None

    @property
    def finished(self) -> bool:
        screen = self.log.screen()
        return bool(screen) and screen[-1].type in TERMINAL

    def count(self, kind: str) -> int:
        return sum(event.type == kind for event in self.log.screen())

    async def watch(self, session_id: str) -> None:
        """Connect once, and stay to the end of the stream."""
        at = self.choose()
        viewer = await at.ask(at.registry.attach(UID, session_id, self._cursor, "turn_end"))
        if viewer is None:
            return
        try:
            while (items := await at.ask(viewer.next())) is not None:
                for item in items:
                    self._obey(item)
        finally:
            viewer.close()

    def _obey(self, item: object) -> None:
        match item:
            case Shown(event=event):
                known = not event.structural or (event.epoch, event.seq) in self._seen.events
                self._seen.expect(durable=known, what=f"{event.type} {event.seq} was shown")
                self.log.entries.append(Heard(event.epoch, event.seq, event.type, event.data))
                self._cursor = Cursor(event.epoch, event.seq)
            case Rewind(to=to):
                self.log.entries.append(Rewound(to.seq))
                self._cursor = to
            case Reset(first_seq=first_seq):
                self.log.entries.append(Cleared(first_seq))
                self._cursor = None if first_seq <= 1 else Cursor(0, first_seq - 1)
            case _:
                pass


class World:
    """One session from its creation to the end of its turn."""

    def __init__(self, stores: Stores, mode: Mode, plan: Plan, plot: Plot) -> None:
        self.seen = Seen()
        self.ledger = Ledger(self.seen)
        self._connect = stores.fresh()
        self._mode: Mode = mode
        self._plan = plan
        self._plot = plot
        self._armed = True
        self._service = AgentRuntimeService(
            {"clerk": clerk(self.ledger)},
            instance_id="runtime",
            wall_clock=lambda: 1_800_000_000.0,
            limits=Limits(grace_seconds=1.0),
        )
        self._edges: list[Edge] = []
        self._session_id = ""
        self._cancels: list[str] = []
        self._late_cancels: list[tuple[str, int]] = []

    async def run(self) -> History:
        """Live through it all; return what is left to judge."""
        for seed in (1, 2):
            journal = Witness(await self._connect(), self.seen)
            self._edges.append(Edge(seed, journal, self._service, self._mode, self._fault))
        self._session_id = await self._insist(lambda registry: registry.create_session(UID))
        asked = request(agent="clerk")
        started = await self._insist(lambda r: r.start_turn(UID, self._session_id, asked))
        tabs = [Tab("tab", self._near, self.seen)]
        if self._plot == "is stopped elsewhere":
            tabs.append(Tab("far tab", self._far, self.seen))
        stopping = self._stop(tabs[-1], started.turn_id)
        await asyncio.gather(stopping, *(self._follow(tab) for tab in tabs))
        self._armed = False  # what follows only looks
        await elapse(AFTERWARDS_SECONDS)
        tabs.append(Tab("late tab", self._far, self.seen))
        for tab in tabs:
            await tab.watch(self._session_id)
        records = await self._insist(self._read)
        await self._close()
        return History(
            records=records,
            clients=[tab.log for tab in tabs],
            rows=self.ledger.rows,
            posts=[(asked.idempotency_key, started.turn_id)],
            cancels=self._cancels,
            late_cancels=self._late_cancels,
            over=True,
        )

    def _fault(self, method: str, n: int) -> Any:
        return self._plan(method, n) if self._armed else None

    def _near(self) -> Edge:
        """Return the edge that a load balancer chooses: the first that lives."""
        return next(edge for edge in self._edges if not edge.dead.is_set())

    def _far(self) -> Edge:
        """Return the one that it chooses for somebody else."""
        return next(edge for edge in reversed(self._edges) if not edge.dead.is_set())

    async def _insist(
        self,
        work: Callable[[Registry], Coroutine[Any, Any, T]],
        choose: Callable[[], Edge] | None = None,
    ) -> T:
        """Call until there is an answer, as a page does: with the same key, at whichever edge lives."""
        for _ in range(TRIES):
            at = (choose or self._near)()
            try:
                return await at.ask(work(at.registry))
            except (Gone, Unavailable):
                await elapse(0.3)
        raise AssertionError("no edge ever answered")

    async def _follow(self, tab: Tab) -> None:
        """Come back again and again until the end of the turn is shown."""
        for _ in range(TRIES):
            with contextlib.suppress(Gone, Unavailable):
                await tab.watch(self._session_id)
            if tab.finished:
                return
            await elapse(0.3)
        raise AssertionError(f"the turn never ended: {tab.log.screen()[-1:]}")

    async def _stop(self, tab: Tab, turn_id: str) -> None:
        """Stop the turn in its second tool; from elsewhere, while that is about to start."""

        async def stop(registry: Registry) -> str:
            return await registry.cancel(UID, self._session_id, turn_id)

        awaited = 1 if self._plot == "is stopped elsewhere" else 2
        while tab.count(TOOL_START) < awaited:
            if tab.finished or self._plot == "ends":
                return
            await elapse(WORD_SECONDS)
        if self._plot == "is stopped elsewhere":
            await elapse(TOOL_SECONDS)
        if await self._insist(stop, tab.choose) == "done":
            self._late_cancels.append((turn_id, self.seen.last_slot))
            return
        self._cancels.append(turn_id)
        self.seen.expect(durable=turn_id in self.seen.cancels, what="a stop was acknowledged")

    async def _read(self, registry: Registry) -> Any:
        journal = self._near().journal
        return (await journal.read(self._session_id, 0, 10_000)).records

    async def _close(self) -> None:
        for one in self._edges:
            await one.close()
        await self._service.drain(0.0)
