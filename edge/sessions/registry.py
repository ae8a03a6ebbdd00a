"""The registry: every session of this process, and the door for everything above.

Knows nothing of HTTP. It finds or opens the room of a session, lets only its owner in, and empties the house
when the process drains.
"""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from edge.core.control import decide_reconnect
from edge.core.cursor import Cursor
from edge.core.errors import (
    Draining,
    Fenced,
    JournalUnavailable,
    Overloaded,
    RuntimeUnavailable,
    SessionExpired,
    SessionNotFound,
    UnknownAgent,
)
from edge.core.event import Event
from edge.core.recap import Recap
from edge.core.requests import TurnRequest, TurnStarted, Until
from edge.core.snapshot import Snapshot
from edge.ports import Clock, Journal, Runtime, SlotTaken, Telemetry
from edge.sessions import commands
from edge.sessions.pulse import TICK_SECONDS, Pulse
from edge.sessions.room import Room
from edge.sessions.services import Services
from edge.sessions.settings import SessionSettings
from edge.sessions.viewer import Viewer

T = TypeVar("T")

COMMAND_SECONDS = 8.0
"""How long a caller waits for what it asked, behind others perhaps: many a client gives up after ten."""
LAST_ANSWERS_SECONDS = 1.0
"""How long a process that has nothing else to do any more waits for the answers it still owes."""
ROOMS_TRIED = 4
"""How many losses of the lease one command may meet before its caller is told to come back."""


class Registry:
    """All calls take the authenticated ``uid`` and answer another user's session as an unknown one.

    Every method raises the ``EdgeError`` that fits; none raises anything else on purpose.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        runtime: Runtime,
        clock: Clock,
        telemetry: Telemetry,
        settings: SessionSettings,
        encode: Callable[[Event], bytes],
        chance: random.Random,
        writer: str,
    ) -> None:
        self._services = Services(
            journal=journal,
            runtime=runtime,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
            encode=encode,
            chance=chance,
            writer=writer,
        )
        self._rooms: dict[str, Room] = {}
        self._loading: dict[str, asyncio.Task[Room]] = {}
        self._opening: set[asyncio.Task[Viewer | None]] = set()
        self._owed: set[asyncio.Future[None]] = set()
        """One for each request that waits; at the end of a drain they hear of it."""
        self._agents: frozenset[str] = frozenset()
        self._pulse = Pulse(self._beat, self._services.later)
        self.draining = False
        self._leaving = False

    # --- sessions -------------------------------------------------------------------------------------

    async def create_session(self, uid: str) -> str:
        """Create a session and return its id; its cursor is ``0-0``."""
        self._refuse_when_draining()
        session_id = _new_session_id(self._services.chance)
        await self._answer(self._services.journal.create_session(session_id, uid))
        return session_id

    async def claim_session(self, uid: str, session_id: str) -> None:
        """Create the session under an id that its user's client chose, unless the user has it already.

        Raises:
            SessionNotFound: it is another user's.
        """
        self._refuse_when_draining()
        await self._answer(self._claim(uid, session_id))

    async def _claim(self, uid: str, session_id: str) -> None:
        journal = self._services.journal
        head = await journal.head(session_id)
        if head is None:
            try:
                await journal.create_session(session_id, uid)
                return
            except SlotTaken:  # somebody was quicker: perhaps the same user's other tab
                head = await journal.head(session_id)
        if head is None or head.owner != uid:
            raise SessionNotFound

    async def recap(self, uid: str, session_id: str, turn_id: str = "") -> Recap | None:
        """Return a turn as the log has it, by default the newest; ``None`` if there is none."""
        return await self._carry_out(uid, session_id, lambda room: commands.recap(room, turn_id))

    async def snapshot(self, uid: str, session_id: str) -> dict[str, Any]:
        """Return the committed state of a session with the cursor it ends at."""
        return await self._answer(self._read_snapshot(uid, session_id))

    async def _read_snapshot(self, uid: str, session_id: str) -> dict[str, Any]:
        head = await self._services.journal.head(session_id)
        if head is None or head.owner != uid:
            raise SessionNotFound
        snapshot = Snapshot(session_id)
        after, more = 0, True
        while more:
            limit = self._services.settings.page_records
            page = await self._services.journal.read(session_id, after, limit)
            snapshot.apply(page.records)
            after = page.records[-1].slot if page.records else after
            more = page.more
        if head.last_slot and not after:
            raise SessionExpired
        return snapshot.as_json()

    async def start_turn(self, uid: str, session_id: str, request: TurnRequest) -> TurnStarted:
        """Start a turn, idempotently; returns once it is durable."""
        self._refuse_when_draining()

        async def start(room: Room) -> TurnStarted:
            await self._check_agent(request.agent)
            return await commands.start_turn(room, request)

        return await self._carry_out(uid, session_id, start)

    async def _check_agent(self, name: str) -> None:
        """Refuse an agent that the runtime does not run; ask it only about a name that is new."""
        if not name or name in self._agents:
            return
        try:
            self._agents = frozenset((await self._services.runtime.info()).agents)
        except RuntimeUnavailable:
            return  # nobody can say now; should it be unknown, the turn ends with that reason
        if name not in self._agents:
            raise UnknownAgent

    async def cancel(self, uid: str, session_id: str, turn_id: str) -> Literal["accepted", "done"]:
        """Stop a turn; returns once no further ``tool_start`` of it can be committed."""
        return await self._carry_out(uid, session_id, lambda room: commands.cancel(room, turn_id))

    async def resolve(
        self, uid: str, session_id: str, turn_id: str, call_id: str, decision: str
    ) -> None:
        """Decide a tool call that waits for a person or a browser."""
        self._refuse_when_draining()
        await self._carry_out(
            uid, session_id, lambda room: commands.resolve(room, turn_id, call_id, decision)
        )

    async def _carry_out(
        self, uid: str, session_id: str, command: Callable[[Room], Coroutine[Any, Any, T]]
    ) -> T:
        """Run a command to its end, but do not keep its caller waiting while the journal is away."""

        async def in_time() -> T:
            try:
                async with asyncio.timeout(COMMAND_SECONDS):
                    return await self._insist(uid, session_id, command)
            except TimeoutError:
                # The command goes on, and whoever repeats it is told what became of it.
                raise JournalUnavailable("no answer from the journal in time") from None

        # A task of its own also for the timer, which would keep the caller's request until it is due.
        return await self._answer(in_time())

    async def _insist(
        self, uid: str, session_id: str, command: Callable[[Room], Coroutine[Any, Any, T]]
    ) -> T:
        """Run a command; anew, on the session's next room, if this one's lease was lost."""
        for _ in range(ROOMS_TRIED):
            room = await self._room(uid, session_id)
            try:
                return await self._services.complete(command(room))
            except Fenced:
                continue
        raise JournalUnavailable("the lease did not come to rest")

    async def attach(
        self, uid: str, session_id: str, cursor: Cursor | None, until: Until
    ) -> Viewer | None:
        """Open a viewer after ``cursor``; ``None`` when nothing is left to say."""
        self._refuse_when_draining()
        for _ in range(ROOMS_TRIED):
            room = await self._room(uid, session_id)
            viewer = await self._open(room, cursor, until)
            if not (room.dead or room.retired):
                return viewer
            if viewer is not None:
                viewer.close()  # its room was fenced while it looked; the next one reads on
            self._refuse_when_draining()  # nobody would send it away any more
        raise JournalUnavailable("the lease did not come to rest")

    async def _open(self, room: Room, cursor: Cursor | None, until: Until) -> Viewer | None:
        if self.streams >= self._services.settings.max_streams:
            raise Overloaded
        opening = self._services.spawn(room.attach(cursor, until))
        self._opening.add(opening)  # counted from here on: many may wait for the journal at once
        opening.add_done_callback(self._opening.discard)
        try:
            return await self._owing(opening)
        except (asyncio.CancelledError, Draining):
            # Nobody waits any more while the journal is read: nobody else would close the viewer.
            opening.add_done_callback(_close_viewer)
            raise

    @property
    def streams(self) -> int:
        """How many streams are open or being opened."""
        return sum(len(room.viewers) for room in self._rooms.values()) + len(self._opening)

    # --- rooms ----------------------------------------------------------------------------------------

    async def _room(self, uid: str, session_id: str) -> Room:
        self._pulse.start()
        room = self._rooms.get(session_id)
        if room is None or room.dead:
            loading = self._loading.get(session_id)
            if loading is None:
                loading = self._services.spawn(self._load(session_id))
                self._loading[session_id] = loading
                loading.add_done_callback(lambda _: self._loading.pop(session_id, None))
            room = await self._owing(loading)
        if room.owner != uid:
            raise SessionNotFound
        room.used_at = asyncio.get_running_loop().time()
        return room

    async def _load(self, session_id: str) -> Room:
        head = await self._services.journal.head(session_id)
        if head is None:
            raise SessionNotFound
        room = Room(self._services, session_id, head.owner)
        await room.load(head)
        # A request that was let in before a drain may come here after it: nobody would hand its turn over.
        room.retired = self.draining
        self._rooms[session_id] = room
        return room

    def _beat(self) -> None:
        now = asyncio.get_running_loop().time()
        idle = self._services.settings.idle_room_seconds
        for session_id, room in list(self._rooms.items()):
            for viewer in list(room.viewers):
                viewer.beat(now, TICK_SECONDS)
            unused = not room.in_use and now - room.used_at > idle
            if not room.viewers and (room.dead or unused):
                del self._rooms[session_id]
        self._services.telemetry.gauge("streams", self.streams)
        self._services.telemetry.gauge("sessions_open", len(self._rooms))

    # --- the process ----------------------------------------------------------------------------------

    async def check(self) -> None:
        """Raise ``Unavailable`` unless the journal and the runtime answer."""
        await self._services.journal.check()
        await self._services.runtime.info()

    async def agents(self) -> Sequence[str]:
        """Return the names of the agents, the default one first. Raises ``RuntimeUnavailable``."""
        return (await self._services.runtime.info()).agents

    async def _answer(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what ``work`` returns. It goes on when its caller leaves, or is told that we leave."""
        return await self._owing(self._services.spawn(work))

    async def _owing(self, task: asyncio.Task[T]) -> T:
        """Wait for a task that goes on by itself, as long as this process can still answer.

        Raises:
            Draining: it leaves. Without a word of ours the HTTP server would make up a bare 500, which
                tells a client nothing and ends an ``EventSource`` for good.
        """
        if self._leaving:
            raise Draining
        owed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task.add_done_callback(lambda _: _settle(owed))
        self._owed.add(owed)
        try:
            await owed
        finally:
            self._owed.discard(owed)
        return task.result()

    def _refuse_when_draining(self) -> None:
        if self.draining:
            raise Draining

    async def drain(self, deadline_seconds: float) -> None:
        """Hand every turn over and end every stream resumably, within the deadline. Idempotent."""
        self.draining = True
        rolling = partial(decide_reconnect, "rolling", self._services.chance, streams=self.streams)
        time = asyncio.get_running_loop().time
        until = time() + deadline_seconds
        rooms = list(self._rooms.values())
        while rooms:
            left = max(until - time(), 0.0)
            await asyncio.gather(*(room.drain(left, rolling) for room in rooms))
            # A request that was let in before may have opened a room, or started a turn.
            rooms = [r for r in self._rooms.values() if not r.retired or r.driver is not None]
        if self._owed:
            patience = min(LAST_ANSWERS_SECONDS, max(until - time(), 0.0))
            await asyncio.wait(self._owed, timeout=patience)
        self._leaving = True
        for owed in self._owed:
            if not owed.done():
                owed.set_exception(Draining())

    async def close(self) -> None:
        """Stop everything that is left; then close the ports. The last call."""
        self._pulse.stop()
        for room in self._rooms.values():
            if room.driver is not None:
                room.driver.abandon()
        await self._services.stop()
        await self._services.runtime.close()
        await self._services.journal.close()


def _settle(owed: asyncio.Future[None]) -> None:
    if not owed.done():
        owed.set_result(None)


def _close_viewer(opening: asyncio.Task[Viewer | None]) -> None:
    if not opening.cancelled() and opening.exception() is None and (viewer := opening.result()):
        viewer.close()


def _new_session_id(chance: random.Random) -> str:
    """Return 143 random bits, as text that needs no escaping anywhere and that no store reserves."""
    return "".join(chance.choices(_ID_ALPHABET, k=24))


_ID_ALPHABET = string.ascii_letters + string.digits + "-"
