"""The driver: performs what the writer decides for one turn, and feeds it what happens.

Knows nothing of rules: it has one inbox and one loop over a closed set of effects. All input and output of a
running turn is in this file. It runs as application tasks, never as request tasks: a web framework cancels
those when the client leaves.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Literal, Protocol

from edge.core import effects as fx
from edge.core import inputs as ins
from edge.core.control import Status
from edge.core.errors import Fenced, JournalUnavailable, LogBroken
from edge.core.event import TURN_START
from edge.core.log import AnyRecord
from edge.core.patience import Now
from edge.core.writer import Writer
from edge.ports import (
    AppendRefused,
    AttemptCall,
    AttemptRef,
    AttemptStream,
    AttemptSuperseded,
    Page,
    Renewal,
    RuntimeEnded,
)
from edge.sessions.appending import FOUND_LIMIT, Appender
from edge.sessions.services import Services
from edge.sessions.tail import Tail

_log = logging.getLogger("edge.sessions")

FAREWELL_SECONDS = 1.0
"""Of a drain: for the hint that the session is free, without which others wait until the lease runs out."""
TIMER_SECONDS = 0.5
"""Of a drain: by how much the writer's own timer may be late."""

CancelAnswer = Literal["accepted", "done"]


class Audience(Protocol):
    """What pacing needs to know of a session's viewers."""

    def lag_bytes(self) -> int | None:
        """Return how far the only viewer lags; ``None`` unless there is exactly one."""


class Driver:
    """Runs one turn of one session, from its acquisition to its end or the loss of the lease."""

    def __init__(
        self,
        services: Services,
        writer: Writer,
        tail: Tail,
        *,
        session_id: str,
        user_id: str,
        audience: Audience,
        on_close: Callable[[fx.Close], None],
    ) -> None:
        self.writer = writer
        self.closed: asyncio.Future[fx.Close] = asyncio.get_running_loop().create_future()
        self._services = services
        self._tail = tail
        self._session_id = session_id
        self._user_id = user_id
        self._audience = audience
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[ins.Input] = deque()
        self._judging = False
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._stream: AttemptStream | None = None
        self._timer: asyncio.Handle | None = None
        self._rings_at = math.inf
        self._room_to_read = asyncio.Event()
        self._cancels: list[asyncio.Future[CancelAnswer]] = []
        self._farewell: asyncio.Task[None] | None = None
        self._appender = Appender(
            services.journal, session_id, services.chance, on_trouble=self._degraded
        )

    def start(self) -> None:
        """Begin; call once."""
        self.feed(ins.Tick())

    # --- in -------------------------------------------------------------------------------------------

    def feed(self, item: ins.Input) -> None:
        """Put an input into the inbox, and judge all that is there."""
        self._inbox.append(item)
        if self._judging:
            return
        self._judging = True
        try:
            while self._inbox and not self.closed.done():
                self._judge(self._inbox.popleft())
        finally:
            self._judging = False
        self._after()

    async def cancel(self) -> CancelAnswer:
        """Stop the turn; return ``accepted`` once that is durable, ``done`` if it ended first.

        Raises:
            Fenced: the lease was lost before that: append the cancel as anybody else would.
        """
        answer: asyncio.Future[CancelAnswer] = self._loop.create_future()
        self._cancels.append(answer)
        self.feed(ins.CancelAsked())
        return await answer

    async def confirm(self) -> None:
        """Return once the log was read: by then a newer owner has been noticed."""
        polling = self._spawn(self._poll(self.writer.view.last_slot))
        try:
            await asyncio.wait([polling])
        finally:
            # Whoever has no more patience must leave no reader behind: others come and wait, too.
            polling.cancel()

    async def drain(self, seconds: float) -> None:
        """Hand the turn over within ``seconds``, the last of which are for letting others know."""
        late = max(seconds - FAREWELL_SECONDS - TIMER_SECONDS, 0.0)
        self.feed(ins.DrainAsked(self._loop.time() + late))
        # When it is late the writer leaves by itself, as tidily as it can.
        await asyncio.wait([self.closed], timeout=late + TIMER_SECONDS)
        self.abandon()
        if self._farewell is not None:
            await asyncio.wait([self._farewell], timeout=FAREWELL_SECONDS)

    def abandon(self) -> None:
        """Stop at once, as if the lease were lost."""
        if not self.closed.done():
            self._close(fx.Close(fenced=True))

    # --- judge ----------------------------------------------------------------------------------------

    def _judge(self, item: ins.Input) -> None:
        try:
            for effect in self.writer.receive(item, self._now()):
                self._perform(effect)
        except LogBroken:
            # Whatever stands in the log, it is not what this owner believes: stop like a fenced one.
            self._services.telemetry.count("log_broken")
            self.abandon()
        except Exception as error:  # noqa: BLE001 - the boundary: it may come from a timer
            self._failed(error)

    def _after(self) -> None:
        """Answer those who wait, and set the one timer."""
        if self.closed.done():
            return
        turn = self.writer.turn
        if turn.cancelled:
            self._answer_cancels("accepted")
        settings = self._services.settings
        full = (
            self.writer.uncommitted_events >= settings.uncommitted_limit_events
            or self.writer.uncommitted_bytes >= settings.uncommitted_limit_bytes
        )
        self._room_to_read.clear() if full else self._room_to_read.set()
        self._set_timer()

    def _set_timer(self) -> None:
        wake_at = self.writer.wake_at()
        if wake_at is None or self._rings_at <= wake_at:
            return  # it rings early and is set again: cheaper than a new timer per token
        self._stop_timer()
        # Kept beside the handle: uvloop's has no ``when`` if the time has come already.
        self._rings_at = wake_at
        self._timer = self._loop.call_at(wake_at, self._ring)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self._rings_at = math.inf
        self.feed(ins.Tick())

    def _now(self) -> Now:
        return Now(self._loop.time(), self._services.clock.now_ms())

    # --- perform --------------------------------------------------------------------------------------

    def _perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Show():
                self._tail.show(effect.events)
            case fx.Append():
                self._spawn(self._append(effect.record))
            case fx.Begin():
                self._spawn(self._run(effect))
            case fx.Ack():
                self._spawn(self._ack(effect))
            case fx.StopRuntime():
                self._spawn(self._stop(effect.attempt))
            case fx.DropStream():
                self._drop_stream()
            case fx.Poll():
                self._spawn(self._poll(effect.after_slot))
            case fx.Renew():
                self._spawn(self._renew(released=False))
            case fx.Close():
                self._close(effect)

    async def _append(self, record: AnyRecord) -> None:
        sent_at = self._loop.time()
        try:
            settled = await self._appender.commit([record])
        except AppendRefused:
            self._services.telemetry.count("append_refused")
            self.feed(ins.Refused())
            return
        self._tail.set_status(Status("ok"))
        if settled.found:
            self.feed(ins.Met(settled.found))
            return
        self._tail.commit(record.last_seq)
        self._services.telemetry.count("records_committed")
        self.feed(ins.Committed(sent_at))

    async def _poll(self, after_slot: int) -> None:
        sent_at = self._loop.time()
        while (page := await self._read(after_slot)) is None:
            await asyncio.sleep(self._services.settings.writer.poll_seconds)
            sent_at = self._loop.time()
        self._tail.set_status(Status("ok"))
        self.feed(ins.Polled(sent_at, page.records))

    async def _read(self, after_slot: int) -> Page | None:
        try:
            return await self._services.journal.read(self._session_id, after_slot, FOUND_LIMIT)
        except JournalUnavailable:
            self._degraded()
            return None

    async def _renew(self, *, released: bool) -> None:
        view = self.writer.view
        renewal = Renewal(view.epoch, view.last_slot, released)
        try:
            await self._services.journal.renew(self._session_id, renewal)
        except JournalUnavailable:
            self._services.telemetry.count("renewals_failed")

    def _ref(self, attempt: int) -> AttemptRef:
        return AttemptRef(self._session_id, self.writer.turn.turn_id, attempt, self._user_id)

    def _call(self, begin: fx.Begin) -> AttemptCall:
        turn, history = self.writer.turn, self.writer.session.history
        ref = self._ref(begin.attempt)
        if begin.attempt > 1:
            resolutions = begin.resolutions
            return AttemptCall(
                ref=ref, agent=turn.agent, history=tuple(history), resolutions=resolutions
            )
        start = next(e for e in reversed(history) if e.type == TURN_START)
        parts = json.loads(start.data)["input"]
        earlier = tuple(event for event in history if event.seq < start.seq)
        return AttemptCall(ref=ref, agent=turn.agent, input=parts, history=earlier)

    async def _run(self, begin: fx.Begin) -> None:
        """Pump one attempt's events into the inbox, as fast as they may be taken."""
        stream = self._stream = self._services.runtime.start(self._call(begin))
        attempt = begin.attempt
        self._services.telemetry.count("attempts_started")
        try:
            async for drafts in stream:
                self.feed(ins.Received(attempt, drafts))
                await self._may_read()
            self.feed(ins.StreamEnded(attempt))
        except RuntimeEnded as ended:
            self.feed(ins.StreamEnded(attempt, ended.reason, ended.retryable))
        except AttemptSuperseded:
            self.feed(ins.AttemptLost(attempt, superseded=True))
        finally:
            stream.cancel()

    async def _may_read(self) -> None:
        """Let back-pressure reach the model: HTTP/2 flow control does the rest."""
        await self._room_to_read.wait()
        if self.writer.turn.pacing != "viewer":
            return
        limit = self._services.settings.pace_limit_bytes
        while (self._audience.lag_bytes() or 0) > limit and not self.closed.done():
            await asyncio.sleep(0.02)

    async def _ack(self, ack: fx.Ack) -> None:
        if not await self._services.runtime.ack(self._ref(ack.attempt), ack.index):
            self.feed(ins.AttemptLost(ack.attempt))

    async def _stop(self, attempt: int) -> None:
        grace = self._services.settings.writer.cancel_grace_seconds
        if not await self._services.runtime.cancel(self._ref(attempt), "cancelled", grace):
            self.feed(ins.AttemptLost(attempt))

    def _drop_stream(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            self._stream = None

    def _degraded(self) -> None:
        self._services.telemetry.count("journal_unavailable")
        self._tail.set_status(Status("degraded"))

    def _close(self, close: fx.Close) -> None:
        self._drop_stream()
        self._stop_timer()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self.closed.set_result(close)
        if not close.fenced:
            # Not one of our tasks: the hint should still go out.
            self._farewell = self._services.spawn(self._renew(released=close.released))
        self._answer_cancels(self._last_word())
        self._on_close(close)

    def _last_word(self) -> CancelAnswer | None:
        """Return what is certain of a cancel when the driver closes; ``None``: the log must decide."""
        turn = self.writer.turn
        if turn.cancelled:
            return "accepted"
        # An end that nobody knows to be durable may yet be another edge's to write.
        return "done" if turn.finished and self.writer.outbox.empty else None

    def _answer_cancels(self, answer: CancelAnswer | None) -> None:
        waiting, self._cancels = self._cancels, []
        for future in waiting:
            if future.done():
                continue
            if answer is None:
                future.set_exception(Fenced())
            else:
                future.set_result(answer)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        """Stop on a defect of ours: somebody else takes the turn over, rather than that it hangs."""
        _log.error("turn driver failed", exc_info=error, extra={"session": self._session_id})
        self._services.telemetry.count("driver_failed")
        self.abandon()
