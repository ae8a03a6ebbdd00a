"""The changes that make the mutants: each breaks one rule of the production code in this process for good.

Knows nothing of who looks for them; ``tests.simulation.mutants`` names the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from edge.core import drafts, replay
from edge.core import effects as fx
from edge.core import inputs as ins
from edge.core.cursor import Cursor
from edge.core.event import TOOL_START, Event
from edge.core.gates import Gates
from edge.core.log import AnyRecord
from edge.core.outbox import Outbox
from edge.core.patience import Now
from edge.core.replay import Attachment, Served
from edge.core.showing import Showing
from edge.core.turn import EXECUTE, Turn
from edge.core.writer import Stage, Writer
from edge.journal.memory import MemoryJournal
from edge.sessions import commands
from edge.sessions import room as room_module
from edge.sessions import viewer as viewer_module
from edge.sessions.appending import Appender, Settled
from edge.sessions.driver import CancelAnswer, Driver
from edge.sessions.registry import Registry
from edge.sessions.room import Room
from edge.sessions.viewer import Viewer


def _replace(owner: Any, **members: Any) -> None:
    for name, member in members.items():
        assert hasattr(owner, name), name
        setattr(owner, name, member)


def ignore_epoch() -> None:
    """Resume after the seq, whatever the epoch."""
    resolve = replay.decide_attach

    def decide_attach(cursor: Cursor | None, served: Served) -> Attachment:
        if cursor is None or cursor.seq > served.last_seq:
            return resolve(cursor, served)
        return Attachment(cursor)

    _replace(room_module, decide_attach=decide_attach)
    _replace(viewer_module, decide_attach=decide_attach)


def resend_blindly() -> None:
    """Pass over whatever stands at the slot, and send the same events to the next one."""

    def _obey(self: Writer, records: Iterable[AnyRecord], now: Now) -> None:
        for record in records:
            self.view.last_slot = record.slot

    _replace(Writer, _obey=_obey)


def overwrite() -> None:
    """Set the record instead of creating it."""
    append = MemoryJournal.append

    async def overwriting(
        self: Any, session_id: str, records: Sequence[AnyRecord], turn: Any = None
    ) -> None:
        session = self._sessions[session_id]
        for record in records:
            if session.records.pop(record.slot, None) is not None:
                session.slots.remove(record.slot)
        await append(self, session_id, records, turn)

    _replace(MemoryJournal, append=overwriting)


def reuse_writer_id() -> None:
    """Name the writer after its place instead of its process, and go on where that name wrote last.

    The name alone breaks nothing any more: whoever takes over here acquires, whatever it is called.
    """
    init, acquire = Registry.__init__, Room.acquire

    def init_anew(self: Registry, *, writer: str, **rest: Any) -> None:
        init(self, writer=writer.partition("#")[0], **rest)

    async def acquire_unless_mine(self: Room) -> None:
        if self.session.view.holder == self.services.writer:
            self.drive(fresh=False)
        else:
            await acquire(self)

    _replace(Registry, __init__=init_anew)
    _replace(Room, acquire=acquire_unless_mine)


def run_again() -> None:
    """Give leave to run every call of a tool that has no end."""
    resolutions = Turn.resolutions

    def generous(self: Turn) -> tuple[tuple[str, str], ...]:
        tools = [name for name, executor in self.calls.items() if executor == "runtime"]
        return tuple((dict.fromkeys(tools, EXECUTE) | dict(resolutions(self))).items())

    _replace(Turn, resolutions=generous)


def answer_cancels_early() -> None:
    """Say ``accepted`` as soon as the cancel is under way."""

    async def cancel(self: Driver) -> CancelAnswer:
        self.feed(ins.CancelAsked())
        return "accepted"

    _replace(Driver, cancel=cancel)


def poll_for_cancels() -> None:
    """Let a cancel be a flag beside the log, durable at once, that the owner looks at when it polls.

    The store's own index of cancelled turns is the flag: a judge who looks for it finds it.
    """
    poll, try_cancel = Driver._poll, commands._try_cancel

    async def _poll(self: Driver, after_slot: int) -> None:
        await poll(self, after_slot)
        turn, flags = self.writer.turn, _flags(self._services)
        if turn.turn_id in flags and not turn.cancelled:
            self.feed(ins.CancelAsked())

    async def _try_cancel(room: Room, turn_id: str) -> CancelAnswer | None:
        await room.refresh()
        turn = room.session.turn
        runs_elsewhere = room.driver is None and turn is not None and turn.needs_writer
        if not runs_elsewhere or turn is None or turn.turn_id != turn_id:
            return await try_cancel(room, turn_id)
        _flags(room.services).add(turn_id)
        room.attend()
        return "accepted"

    _replace(Driver, _poll=_poll)
    _replace(commands, _try_cancel=_try_cancel)


def _flags(services: Any) -> set[str]:
    flags: set[str] = services.journal._store.cancelled
    return flags


def show_tool_starts_early() -> None:
    """Treat a tool start like a token: shown at once."""
    take = Showing.take

    def take_early(self: Showing, durable_seq: int, *, lease_fresh: bool) -> list[Event]:
        shown = take(self, durable_seq, lease_fresh=lease_fresh)
        while self._waiting and self._waiting[0].type == TOOL_START:
            shown.append(self._waiting.popleft())
        return shown

    _replace(Showing, take=take_early)


def release_tools_early() -> None:
    """Acknowledge a tool start when it is numbered, not when it is durable."""
    open_through = Gates.open_through
    _replace(Gates, open_through=lambda self, _durable_seq: open_through(self, 1 << 60))


def rewind_to_last() -> None:
    """Rewind to the end of the log, as if there had been one take-over only."""
    _replace(replay, fork_after=lambda _epoch, served: served.last_seq)


def never_resolve_again() -> None:
    """Leave an open stream as it is when the epoch grows."""
    _replace(Viewer, _resolve_again=lambda self: None)


def trust_late_acquires() -> None:
    """Take an acquire for the newest because it is in the log."""

    async def acquire(self: Room) -> None:
        record = self.acquisition()
        settled = await self.appender.commit([record], tries=room_module.TRIES)
        if not settled.found:
            self.apply([record])
            self.drive(fresh=False)

    async def _opened(room: Room, records: list[AnyRecord], settled: Settled) -> None:
        room.apply(records)
        room.drive(fresh=True)

    _replace(Room, acquire=acquire)
    _replace(commands, _opened=_opened)


def keep_tool_starts() -> None:
    """Meet a cancel, and send the tool start after it all the same."""
    _replace(Outbox, take_back_tool_starts=lambda _self: [])


def keep_grants() -> None:
    """Let a permission outlive the attempt that it was given to."""
    resolutions, open_attempt = Turn.resolutions, Turn._open_attempt

    def _open_attempt(self: Turn, event: Any) -> None:
        granted = dict(resolutions(self))
        open_attempt(self, event)
        self.decisions |= granted

    _replace(Turn, _open_attempt=_open_attempt)


def begin_early() -> None:
    """Call the runtime before the attempt is durable."""

    def _begin(self: Writer) -> None:
        if self.stage is Stage.STARTING and not self.turn.cancelled:
            self.stage = Stage.RUNNING
            self._gates.clear()
            self._effects.append(fx.Begin(self.turn.attempt, self._resolutions))
        elif self.stage is Stage.STARTING:
            self._end(drafts.cancelled(self.turn.turn_id))

    _replace(Writer, _begin=_begin)


def match_by_slot() -> None:
    """Take whatever of one's own kind stands at the slot for one's own record."""

    def _judge(
        self: Appender, records: Sequence[AnyRecord], found: Sequence[AnyRecord], *, late: bool
    ) -> Settled:
        mine = [type(record) for record in found[: len(records)]] == [type(r) for r in records]
        return Settled(late=True) if mine else Settled(found, late)

    _replace(Appender, _judge=_judge)


def never_read_on() -> None:
    """Resolve a cursor of a higher epoch by what is known here."""

    async def _look(self: Room, cursor: Cursor | None) -> None:
        if self.driver is None:
            async with self.lock:
                await self.refresh()

    _replace(Room, _look=_look)
