"""What callers may change: start a turn, cancel it, decide a tool call. Each is an append to the log; a recap reads.

Knows nothing of HTTP. Every function may run on any edge: the log decides who wins. The registry runs each as an
application task, because a web framework cancels handlers whose client has left.
"""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b32encode

from edge.core import drafts
from edge.core.errors import (
    Fenced,
    IdempotencyKeyReused,
    JournalUnavailable,
    ToolCallNotFound,
    ToolCallSettled,
    TurnInProgress,
    TurnNotFound,
)
from edge.core.event import Event
from edge.core.log import AnyRecord, Events, Resolve
from edge.core.recap import Recap, recap_of
from edge.core.requests import TurnRequest, TurnStarted
from edge.core.session import cursor_at
from edge.core.turn import TurnState
from edge.ports import TurnEntry
from edge.sessions.appending import Settled, TurnExists
from edge.sessions.driver import CancelAnswer
from edge.sessions.room import TRIES, Room
from edge.sessions.waiting import alone, within_patience

CONTENTION_TRIES = 20
"""An owner leaves 100 ms between batches: measured, a contender needs three tries at the 99th percentile."""


def turn_id_for(uid: str, session_id: str, idempotency_key: str) -> str:
    """Derive the turn's id: equal keys of one user in one session are one turn, on every edge."""
    digest = hashlib.sha256(f"{uid}|{session_id}|{idempotency_key}".encode()).digest()
    return b32encode(digest).decode().lower()[:26]


async def start_turn(room: Room, request: TurnRequest) -> TurnStarted:
    """Start a turn, or find the one that an equal request started.

    Raises:
        TurnInProgress, IdempotencyKeyReused, JournalUnavailable: see there.
    """
    turn_id = turn_id_for(room.owner, room.session_id, request.idempotency_key)
    for _ in range(CONTENTION_TRIES):
        entry = await room.services.journal.turn(room.session_id, turn_id)
        if entry is not None:
            return await _replayed(room, request, entry)
        async with alone(room.lock):
            started = await _try_start(room, request, turn_id)
        if started is not None:
            return started
        await _yield_slot(room)
    raise JournalUnavailable("the log stayed busy")


async def _try_start(room: Room, request: TurnRequest, turn_id: str) -> TurnStarted | None:
    """Append the turn's first record. ``None``: somebody was quicker; look again."""
    await _look(room, turn_id)
    if room.session.busy and room.session.turn is not None:
        if room.session.turn.turn_id == turn_id:
            return None  # its entry is there by now
        if room.driver is None:
            room.attend()
        raise TurnInProgress(room.session.turn.turn_id)
    if room.driver is not None:
        return None  # it has shown the end of the turn before, and is about to close
    before = cursor_at(room.session.view.epoch_starts, room.session.view.last_seq)
    records = _opening(room, request, turn_id)
    entry = TurnEntry(turn_id, request.body_hash, records[-1].slot)
    try:
        settled = await room.appender.commit(records, entry, tries=TRIES)
    except TurnExists:
        return None
    if settled.found:
        return None
    await _opened(room, records, settled)
    return TurnStarted(turn_id, before, replayed=False)


async def _opened(room: Room, records: list[AnyRecord], settled: Settled) -> None:
    room.apply(records)
    if settled.late:
        await room.refresh()  # P-LOG-1: whoever acquired after us drives the turn
    mine = room.session.view.holder == room.services.writer
    if mine and room.session.view.last_slot == records[-1].slot:
        await room.drive_or_release(fresh=True)
    elif room.session.busy:
        room.attend()
    room.services.telemetry.count("turns_started")


def _opening(room: Room, request: TurnRequest, turn_id: str) -> list[AnyRecord]:
    """Return the records of a new turn: an ``Acquire`` unless this process owns the session, and its start."""
    view, wall_ms = room.session.view, room.services.clock.now_ms()
    records: list[AnyRecord] = []
    if view.holder != room.services.writer:
        records.append(room.acquisition())
    epoch = records[0].epoch if records else view.epoch
    policy = {"on_disconnect": request.on_disconnect, "pacing": request.pacing}
    draft = drafts.turn_start(
        turn_id,
        request.agent,
        attempt=1,
        user_input=request.input,
        message_id=request.message_id,
        policy=policy,
    )
    event = Event(
        epoch=epoch,
        seq=view.last_seq + 1,
        type=draft.type,
        data=draft.data,
        subject=draft.subject,
        private=draft.private,
        at_ms=wall_ms,
    )
    records.append(
        Events(
            slot=view.last_slot + 1 + len(records),
            epoch=epoch,
            writer=room.services.writer,
            last_seq=event.seq,
            expire_at_ms=room.expiry_ms(),
            acquire_slot=records[0].slot if records else view.acquire_slot,
            events=(event,),
        )
    )
    return records


async def _replayed(room: Room, request: TurnRequest, entry: TurnEntry) -> TurnStarted:
    """Answer a repeat: the resource is the turn, and it exists."""
    if entry.body_hash != request.body_hash:
        raise IdempotencyKeyReused
    page = await room.services.journal.read(room.session_id, entry.slot - 1, 1)
    record = page.records[0] if page.records else None
    async with alone(room.lock):
        await room.refresh()
    if room.session.busy and room.driver is None:
        room.attend()  # its owner may be dead
    before = record.first_seq - 1 if isinstance(record, Events) else room.session.view.first_seq - 1
    cursor = cursor_at(room.session.view.epoch_starts, before)
    return TurnStarted(entry.turn_id, cursor, replayed=True)


async def cancel(room: Room, turn_id: str) -> CancelAnswer:
    """Stop a turn. Once this returns ``accepted``, no ``tool_start`` of it can enter the log any more.

    Raises:
        TurnNotFound, JournalUnavailable: see there.
    """
    for _ in range(CONTENTION_TRIES):
        answer = await room.cancel_here(turn_id)
        if answer is None:
            async with alone(room.lock):
                answer = await _try_cancel(room, turn_id)
        if answer is not None:
            return answer
        await _yield_slot(room)
    raise JournalUnavailable("the log stayed busy")


async def _try_cancel(room: Room, turn_id: str) -> CancelAnswer | None:
    await _look(room, turn_id)
    turn = room.session.turn
    current = turn is not None and turn.turn_id == turn_id
    if current and room.driver is not None:
        return None  # it knows which of its events are durable, the end of the turn among them
    if turn_id in room.session.finished_turns:
        return "done"
    if turn is None or not current:
        raise TurnNotFound
    if not turn.cancelled:  # P-LOG-8: none is appended if one is there
        record = room.session.view.next_cancel(
            turn_id, writer=room.services.writer, expire_at_ms=room.expiry_ms()
        )
        settled = await room.appender.commit([record], tries=TRIES)
        if settled.found:
            return None
        room.apply([record])
    room.attend()
    return "accepted"


async def resolve(room: Room, turn_id: str, call_id: str, decision: str) -> None:
    """Record what was decided about a tool call that waits, and go on when it was the last one.

    Raises:
        TurnNotFound, ToolCallNotFound, ToolCallSettled, JournalUnavailable: see there.
    """
    for _ in range(CONTENTION_TRIES):
        async with alone(room.lock):
            if await _try_resolve(room, turn_id, call_id, decision):
                return
        await _yield_slot(room)
    raise JournalUnavailable("the log stayed busy")


async def _try_resolve(room: Room, turn_id: str, call_id: str, decision: str) -> bool:
    await _look(room, turn_id)
    turn = room.session.turn
    if turn is None or turn.turn_id != turn_id:
        raise TurnNotFound
    if call_id in turn.settled:
        if turn.settled[call_id] != decision:
            raise ToolCallSettled
        return True
    waits = turn.state is TurnState.PARKED and call_id in turn.pending
    if not waits:
        raise ToolCallNotFound
    if room.driver is not None:
        return False  # it is committing the suspension, and about to close
    view = room.session.view
    record = Resolve(
        slot=view.last_slot + 1,
        epoch=view.epoch,
        writer=room.services.writer,
        last_seq=view.last_seq,
        expire_at_ms=room.expiry_ms(),
        turn_id=turn_id,
        call_id=call_id,
        decision=decision,
    )
    settled = await room.appender.commit([record], tries=TRIES)
    if settled.found:
        return False
    room.apply([record])
    room.attend()  # should this process fail to go on, a follower will
    if turn.decided:
        await room.acquire()
    return True


async def recap(room: Room, turn_id: str = "") -> Recap | None:
    """Return a turn as the log has it, by default the newest. Raises ``Fenced``, ``JournalUnavailable``."""
    async with alone(room.lock):
        if room.dead:
            raise Fenced
        await room.refresh()
        return recap_of(room.session, turn_id)


async def _look(room: Room, turn_id: str) -> None:
    """Read the log to its end, before anything is said of a turn. Hold the room's lock.

    Raises:
        Fenced: what this process believes is void; ask the session's next room.
    """
    if room.dead:
        raise Fenced
    await room.refresh()
    turn = room.session.turn
    if room.driver is None or (turn is not None and turn.turn_id == turn_id):
        return
    # An owner of another turn may be one that slept through its successors.
    await within_patience(room.driver.confirm())
    if room.dead:
        raise Fenced
    await room.refresh()  # its turn may have ended meanwhile, and then nobody has read on


async def _yield_slot(room: Room) -> None:
    await asyncio.sleep(0.02 + 0.08 * room.services.chance.random())
