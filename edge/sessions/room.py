"""A room: one session in this process, whether it writes it or follows another edge's writing.

Knows nothing of requests (``edge.sessions.commands``) or of other sessions (``edge.sessions.registry``). It folds
the log, feeds the tail, and turns from follower to owner when an owner's lease has run out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from edge.core import effects as fx
from edge.core.control import Reconnect, ResetReason, Status
from edge.core.cursor import Cursor
from edge.core.errors import (
    Fenced,
    JournalUnavailable,
    LogBroken,
    SessionExpired,
    TooManyStreams,
)
from edge.core.lease import Suspicion, decide_vacancy
from edge.core.log import Acquire, AnyRecord, Events
from edge.core.patience import Now
from edge.core.replay import Served, decide_attach
from edge.core.requests import Until
from edge.core.session import Session
from edge.core.writer import Writer
from edge.ports import Head, Renewal
from edge.sessions.appending import Appender
from edge.sessions.driver import CancelAnswer, Driver
from edge.sessions.services import Services
from edge.sessions.tail import Tail
from edge.sessions.unwatched import Unwatched
from edge.sessions.viewer import Viewer
from edge.sessions.waiting import within_patience

_log = logging.getLogger("edge.sessions")

LOOK_EVERY_SECONDS = 1.0
"""How often a follower looks after the owner, and says that it has viewers."""
TRIES = 4
"""How often a request's append is tried before the caller is told to come back."""


class Room:
    """One session. Everything that appends holds ``lock``, except the driver, which is alone while it runs."""

    def __init__(self, services: Services, session_id: str, owner: str) -> None:
        self.services = services
        self.session_id = session_id
        self.owner = owner
        self.session = Session()
        self.lock = asyncio.Lock()
        self.driver: Driver | None = None
        self.viewers: dict[Viewer, None] = {}  # in order of arrival
        self.retired = False
        """The process is leaving: what it hands over it must not take back."""
        self._goodbye: Callable[[], Reconnect] | None = None
        self.dead = False
        """Its memory can no longer be believed: the registry makes a new room."""
        self.appender = Appender(services.journal, session_id, services.chance)
        self.tail = self._new_tail()
        self._floor_reason: ResetReason = "expired"
        self._opening = 0
        self._attended_until = 0.0
        self._suspicion = Suspicion(services.settings.writer.ttl_seconds)
        self._unwatched = Unwatched(
            services,
            session_id,
            unwatched=lambda: self.driver is not None and not self.viewers,
            cancel=self.cancel_here,
        )
        self._follower: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.used_at = self._loop.time()  # its caller has not got it yet, and it is no idle one

    # --- reading --------------------------------------------------------------------------------------

    async def load(self, head: Head) -> None:
        """Read the log for the first time. Raises ``SessionExpired`` if nothing is left of it."""
        async with self.lock:
            await self.refresh()
        if head.last_slot and not self.session.view.last_slot:
            raise SessionExpired

    async def refresh(self) -> None:
        """Read the log to its end. Hold ``lock``; the driver, if there is one, reads for itself."""
        more = self.driver is None
        while more:
            after, limit = self.session.view.last_slot, self.services.settings.page_records
            page = await self.services.journal.read(self.session_id, after, limit)
            self.apply(page.records)
            more = page.more

    def apply(self, records: Iterable[AnyRecord]) -> None:
        """Take in records that are in the log, and show their events."""
        for record in records:
            self._suspicion.dispel()  # whoever wrote it was alive
            self._fold(record)
            if isinstance(record, Events):
                self.tail.show(e for e in record.events if e.seq > self.tail.last_seq)
                self.tail.commit(record.last_seq)
            elif isinstance(record, Acquire):
                self.tail.wake()

    def _fold(self, record: AnyRecord) -> None:
        first = not self.session.view.last_slot
        try:
            self.session.apply(record)
        except LogBroken:
            self._start_again(record)
        if first:
            self.tail.start_after(self.session.view.first_seq - 1)

    def _start_again(self, record: AnyRecord) -> None:
        """Treat everything before a hole as gone: readers are told ``gap``, nothing is guessed."""
        self.services.telemetry.count("log_broken")
        self._floor_reason = "gap"
        self.session = Session()
        self.session.apply(record)
        self.tail.close()
        self.tail = self._new_tail()
        self.tail.start_after(self.session.view.first_seq - 1)

    def _new_tail(self) -> Tail:
        return Tail(self.services.encode, self.services.settings.tail_limit_bytes)

    @property
    def epoch(self) -> int:
        return self.session.view.epoch

    def served(self) -> Served:
        view = self.session.view
        return Served(
            epoch=view.epoch,
            first_seq=view.first_seq,
            last_seq=self.tail.last_seq,
            epoch_starts=view.epoch_starts,
            running=self.tail.busy,
            floor_reason=self._floor_reason,
        )

    # --- viewers --------------------------------------------------------------------------------------

    async def attach(self, cursor: Cursor | None, until: Until) -> Viewer | None:
        """Open a viewer; ``None`` when nothing is left to say.

        Raises:
            TooManyStreams, JournalUnavailable: see there.
        """
        if self.watchers >= self.services.settings.max_streams_per_session:
            raise TooManyStreams
        self._opening += 1  # counted from here on: many may wait for the journal at once
        try:
            return await self._attach(cursor, until)
        finally:
            self._opening -= 1

    @property
    def watchers(self) -> int:
        """How many streams are open or being opened."""
        return len(self.viewers) + self._opening

    async def _attach(self, cursor: Cursor | None, until: Until) -> Viewer | None:
        await self._look(cursor)
        attachment = decide_attach(cursor, self.served())
        ended = not self.tail.busy and attachment.position.seq >= self.tail.last_seq
        if until == "turn_end" and ended and attachment.control is None:
            return None
        viewer = Viewer(self.services, self, attachment, until)
        self.viewers[viewer] = None
        self._unwatched.stop()
        self._follow()
        return viewer

    async def _look(self, cursor: Cursor | None) -> None:
        while True:  # a turn may begin or end here meanwhile, and then nobody has read on
            driver = self.driver
            if driver is None:
                async with self.lock:
                    await self.refresh()
            elif cursor is not None and cursor.epoch > self.session.view.epoch:
                await within_patience(driver.confirm())  # P-LOG-6: read on first
            if self.dead or self.driver is driver:
                return

    def leave(self, viewer: Viewer) -> None:
        """Forget a viewer; a turn that was to end with its last one gets its grace period."""
        if viewer not in self.viewers:
            return
        del self.viewers[viewer]
        self._unwatched.look(self.session)

    def lag_bytes(self) -> int | None:
        """Return how far the only viewer lags; ``None`` unless there is exactly one."""
        if len(self.viewers) != 1:
            return None
        return next(iter(self.viewers)).lag_bytes()

    async def cancel_here(self, turn_id: str) -> CancelAnswer | None:
        """Stop a turn that this process drives; ``None`` if it does not, or lost the lease meanwhile."""
        turn = self.session.turn
        if self.driver is None or turn is None or turn.turn_id != turn_id:
            return None
        try:
            return await within_patience(self.driver.cancel())
        except Fenced:
            return None

    # --- following and owning -------------------------------------------------------------------------

    def attend(self) -> None:
        """Follow for a while even without viewers, so that a dead owner's turn is ended by somebody."""
        self._attended_until = self._loop.time() + self.services.settings.writer.ttl_seconds * 2
        self._follow()

    def _follow(self) -> None:
        idle = self._follower is None and self.driver is None
        if idle and not self.dead and not self.retired:
            self._follower = self.services.spawn(self._follow_log())

    @property
    def _attended(self) -> bool:
        return bool(self.viewers) or self._loop.time() < self._attended_until

    async def _follow_log(self) -> None:
        """Read what another edge writes, for as long as somebody wants it here."""
        settings = self.services.settings
        looked_at = float("-inf")
        try:
            while self._attended and self.driver is None and not (self.dead or self.retired):
                pause = (
                    settings.follow_seconds if self.session.busy else settings.idle_follow_seconds
                )
                try:
                    async with self.lock:
                        await self.refresh()
                    if self._loop.time() - looked_at >= LOOK_EVERY_SECONDS:
                        looked_at = self._loop.time()
                        await self._look_after_owner()
                    self.tail.set_status(Status("ok"))
                except JournalUnavailable:
                    self.services.telemetry.count("journal_unavailable")
                    self.tail.set_status(Status("degraded"))
                await asyncio.sleep(pause * (0.9 + 0.2 * self.services.chance.random()))
        except Exception as error:  # noqa: BLE001 - the boundary of a task that nobody awaits
            # Whatever this is, a stream that only pings is worse than one that is opened again.
            _log.error("a follower failed", exc_info=error, extra={"session": self.session_id})
            self._die()
        finally:
            self._follower = None

    async def _look_after_owner(self) -> None:
        turn = self.session.turn
        if turn is None or turn.finished or self.driver is not None:
            return
        head = await self.services.journal.head(self.session_id)
        if head is None:
            return
        if self.viewers and turn.on_disconnect == "cancel":
            await self.services.journal.watch(self.session_id)
        now = self._loop.time()
        renewal = (head.epoch, head.renewed_at_ms)
        vacancy = decide_vacancy(
            needs_writer=turn.needs_writer,
            head_epoch=head.epoch,
            log_epoch=self.session.view.epoch,
            renewed_seconds_ago=head.renewed_seconds_ago,
            unchanged_seconds=self._suspicion.unchanged_seconds(renewal, now),
            ttl_seconds=self.services.settings.writer.ttl_seconds,
        )
        if self._suspicion.confirms(vacancy, now):
            await self.take_over()

    async def take_over(self) -> None:
        """Append an ``Acquire`` and drive the turn; on conflict leave it to the next round."""
        async with self.lock:
            await self.refresh()
            turn = self.session.turn
            if self.driver is None and turn is not None and turn.needs_writer:
                await self.acquire()

    async def acquire(self) -> None:
        """Take the lease of a turn that needs a writer. Hold ``lock``."""
        record = self.acquisition()
        settled = await self.appender.commit([record], tries=TRIES)
        if settled.found:
            return
        self.apply([record])
        if settled.late:
            await self.refresh()  # P-LOG-1: it counts only if no higher acquire is there
        turn = self.session.turn
        if self.session.view.acquire_slot == record.slot and turn is not None and turn.needs_writer:
            self.services.telemetry.count("takeovers")
            await self.drive_or_release(fresh=False)

    def acquisition(self) -> Acquire:
        """Return the ``Acquire`` for the next slot."""
        view = self.session.view
        return Acquire(
            slot=view.last_slot + 1,
            epoch=view.epoch + 1,
            writer=self.services.writer,
            last_seq=view.last_seq,
            expire_at_ms=self.expiry_ms(),
            epoch_starts=view.next_epoch_starts(),
        )

    def expiry_ms(self) -> int:
        """Return the expiry of a record written now; it never goes back."""
        kept = self.services.clock.now_ms() + self.services.settings.writer.retention_ms
        return max(self.session.view.expire_at_ms, kept)

    async def drive_or_release(self, *, fresh: bool) -> None:
        """Start the driver of a turn that was just acquired, unless nobody would ever drain this room."""
        if not (self.retired or self.dead):
            self.drive(fresh=fresh)
            return
        view = self.session.view
        released = Renewal(view.epoch, view.last_slot, released=True)
        await self.services.journal.renew(self.session_id, released)

    def drive(self, *, fresh: bool) -> None:
        """Start the driver of the session's turn. The newest ``Acquire`` is this process's."""
        now = Now(self._loop.time(), self.services.clock.now_ms())
        writer = Writer(
            self.session,
            self.services.writer,
            self.services.settings.writer,
            chance=self.services.chance,
            now=now,
            fresh=fresh,
        )
        self.driver = Driver(
            self.services,
            writer,
            self.tail,
            session_id=self.session_id,
            user_id=self.owner,
            audience=self,
            on_close=self._driver_closed,
        )
        self.driver.start()
        self._unwatched.look(self.session)  # a viewer may never come

    def _driver_closed(self, close: fx.Close) -> None:
        self.driver = None
        if close.fenced or not close.settled:
            self._die()
        elif self._attended:
            self._follow()

    def _die(self) -> None:
        """Stop believing what this process showed and knew beyond the log.

        Streams end without a word, but for those of a leaving process: clients come back with a cursor, and the
        attach table does the rest.
        """
        self.dead = True
        self._say_goodbye()
        self.tail.close()

    # --- the end --------------------------------------------------------------------------------------

    async def drain(self, seconds: float, reconnect: Callable[[], Reconnect]) -> None:
        """Hand over the turn that runs here, if any, and send the viewers after it."""
        self.retired = True
        self._goodbye = reconnect
        if self.driver is not None:
            await self.driver.drain(seconds)
        self._say_goodbye()

    def _say_goodbye(self) -> None:
        if self._goodbye is not None:
            for viewer in self.viewers:
                viewer.send_away(self._goodbye())

    @property
    def in_use(self) -> bool:
        busy = self.driver is not None or self._follower is not None or self.lock.locked()
        return busy or bool(self.viewers)
