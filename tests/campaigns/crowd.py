"""A crowd at work under faults: users come, ask for some turns and leave; each is judged on leaving.

Knows nothing of the faults. A turn may outlive many owners, so what a user has no patience with is
silence. On leaving, a newcomer who has seen nothing must be shown exactly the log.

Whoever stages faults takes an edge that is not to be asked out of ``scene.nodes``, as a balancer
would, and leaves at least one there.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pprint import pformat

from edge.core.event import TERMINAL
from edge.core.log import Acquire, Events
from tests.campaigns.tally import Tally
from tests.faults.asking import insist
from tests.faults.client import Client
from tests.faults.scene import Scene
from tests.faults.users import SILENCE_SECONDS, User, follow
from tests.support.checker import violations
from tests.support.history import Heard, History, Kind, Violation

TURNS = 10
"""A user's; whoever takes a session over reads its whole log, so a log is kept to a sane length."""


@dataclass(slots=True)
class Visit:
    """One session, with its user and whoever else looks at it."""

    user: User
    tabs: list[Client]
    newcomer: Client
    last_seq: int | None = None
    """Where the log ends, once the user has left."""
    failures: list[str] = field(default_factory=list)

    def shown(self, client: Client) -> bool:
        """Whether the user has left, and a client shows the end of the log."""
        newest = client.screen[-1:]
        return self.last_seq is not None and bool(newest) and newest[0].seq >= self.last_seq

    async def history(self) -> History:
        """Return what is known of the session."""
        history = await self.user.history()
        history.clients = [self.user.client.log, *(c.log for c in (*self.tabs, self.newcomer))]
        for number, log in enumerate(history.clients):
            log.name = f"client {number}"
            # Whoever gave up may not have been told yet what did not survive.
            log.settled = not self.failures
        history.over = not self.failures
        return history

    def violations(self, history: History) -> Iterator[Violation]:
        """Yield every promise that was broken here."""
        for failure in self.failures:
            yield Violation(Kind.OTHER, failure)
        yield from violations(history)
        log = [Heard(e.epoch, e.seq, e.type, e.data) for e in history.events()]
        if not self.failures and self.newcomer.screen != log:
            yield Violation(Kind.LOST, "a newcomer is not shown the log as it is")


@dataclass(slots=True)
class Crowd:
    """Users of one scene."""

    scene: Scene
    chance: random.Random
    tally: Tally
    tell: Callable[[str], None]
    tabs: int = 0
    """How many tabs look on beside a user's own."""
    struck_at: dict[str, float] = field(default_factory=dict)
    """When edges were killed or stopped, by the names they write by: for the time until they are replaced."""

    async def work(self, size: int, over: asyncio.Event) -> None:
        """Keep so many users at work until it is over, and each has its last answer."""
        async with asyncio.TaskGroup() as seats:
            for _ in range(size):
                seats.create_task(self._seat(over))

    async def _seat(self, over: asyncio.Event) -> None:
        while not over.is_set():
            visit = await self._arrive()
            # The one place where a user whose answer never ends is caught, and counted.
            try:
                async with asyncio.TaskGroup() as group:
                    for tab in visit.tabs:
                        group.create_task(self._follow(tab, visit))
                    group.create_task(self._stay(visit, over))
            except* AssertionError as failed:
                visit.failures += [str(error) for error in failed.exceptions]
            await self._judge(visit)

    async def _arrive(self) -> Visit:
        """Open a session at any edge. Raises ``AssertionError`` if none answers: then nothing is up."""
        chance = random.Random(self.chance.random())
        answer = await insist(
            lambda: chance.choice(self.scene.ports), "/v1/sessions", {}, seconds=SILENCE_SECONDS
        )
        session_id = str(answer.json["session_id"])
        tabs = [Client(session_id) for _ in range(self.tabs)]
        return Visit(User.of(self.scene, chance, session_id), tabs, Client(session_id))

    async def _stay(self, visit: Visit, over: asyncio.Event) -> None:
        for _ in range(TURNS):
            await visit.user.ask_and_watch()
            if over.is_set():
                break
        visit.last_seq = (await self.scene.events(visit.user.client.session_id))[-1].seq
        await self._follow(visit.newcomer, visit)

    async def _follow(self, client: Client, visit: Visit) -> None:
        await follow(self.scene, visit.user.chance, client, lambda: visit.shown(client))

    async def _judge(self, visit: Visit) -> None:
        history = await visit.history()
        found = list(visit.violations(history))
        session_id = visit.user.client.session_id
        if found:
            kept = self.scene.crew.folder / f"violated-{session_id}.txt"
            kept.write_text(pformat((found, history), width=160))
        self.tally.histories += 1
        self.tally.accuse(Violation(v.kind, f"{session_id}: {v.text}") for v in found)
        self.tally.takeover_seconds += takeovers(history, visit.user.client, self.struck_at)
        self.tell(
            f"{self.tally.fault}: {self.tally.count} staged, {self.tally.histories} histories judged, "
            f"{self.tally.found.total()} violations"
        )


def takeovers(history: History, client: Client, struck_at: Mapping[str, float]) -> Iterator[float]:
    """Yield, for each owner that was killed in a turn, the seconds until its client heard of a successor.

    A successor that was killed before it was heard of does not count: the time runs on until the next.
    """
    heard = [*zip(client.heard_at, client.log.heard(), strict=True)]
    owner, running = "", False
    for record in history.records:
        if isinstance(record, Events):
            running = record.events[-1].type not in TERMINAL
        elif isinstance(record, Acquire):
            if running and owner in struck_at:
                later = (at for at, event in heard if event.epoch >= record.epoch)
                # Whoever lost its lease alive, and was killed afterwards, was not taken over for it.
                yield from (at - struck_at[owner] for at in [*later][:1] if at > struck_at[owner])
            owner = record.writer
