"""The single steps of an event's way through the edge, each by itself, in CPU time of this process.

Every step runs as often as it can within a slice of time; the cheapest of the slices counts, because
all that a neighbour on the machine can do is make one dearer.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core import drafts
from edge.core import effects as fx
from edge.core import inputs as ins
from edge.core.event import Draft, Event
from edge.core.log import AnyRecord, Events
from edge.core.patience import Now, WriterSettings
from edge.core.session import Session
from edge.core.writer import Writer
from edge.journal.memory import MemoryJournal
from edge.journal.sqlite import SqliteJournal
from edge.ports import Journal
from edge.sessions.registry import Registry
from edge.sessions.settings import SessionSettings
from edge.sessions.viewer import Viewer
from edge.telemetry import Metrics
from edge.upstream.attempt import AttemptReader
from edge.wire.native import event_frame
from tests.benchmarks.load_runtime import TEXT, token
from tests.support.journal_records import EDGE_A, LIVE_MS, ManualClock, acquire, events
from tests.support.runtime_double import Attempt, RuntimeDouble

_SLICES = 5
_SLICE_SECONDS = 0.2
_PACK = 20
_RECORDS = 2_000
_SESSION = "session-of-a-benchmark"
_TURN = "aaaaaaaaaabbbbbbbbbbcccccc"
_DATA = f'{{"turn_id":"{_TURN}","message_id":"m1","text":"{TEXT}"}}'

Row = tuple[str, float]


async def measure() -> list[Row]:
    """Return ``(step, CPU microseconds)``."""
    with tempfile.TemporaryDirectory() as folder:
        sqlite = await SqliteJournal.open(Path(folder) / "journal.sqlite3", ManualClock())
        try:
            return [*_of_tokens(), *await _of_journals(MemoryJournal(ManualClock()), sqlite)]
        finally:
            await sqlite.close()


def _of_tokens() -> Iterator[Row]:
    for count, what in ((1, "a message of 1 token"), (_PACK, f"each of {_PACK} tokens together")):
        yield f"read {what}: parse, check, draft", _cost(_reading(count)) / count
        yield f"judge {what}: Writer.receive", _cost(_judging(count)) / count
    event = _token(17)
    yield "frame an event", _cost(lambda: event_frame(event))


async def _of_journals(memory: Journal, sqlite: Journal) -> list[Row]:
    rows = [
        ("append a record of 10 tokens to SQLite", await _fill(sqlite)),
        ("replay an event to a viewer from SQLite", await _cost_of_replay(sqlite)),
    ]
    await _fill(memory)
    rows.append(("replay an event to a viewer from memory", await _cost_of_replay(memory)))
    rows.append(("show an event to one viewer, and wake its task", await _cost_of_showing()))
    return rows


def _cost(step: Callable[[], object]) -> float:
    return min(_slice(step) for _ in range(_SLICES))


def _slice(step: Callable[[], object]) -> float:
    count, begun = 0, time.process_time()
    while (spent := time.process_time() - begun) < _SLICE_SECONDS:
        for _ in range(100):
            step()
        count += 100
    return spent * 1e6 / count


def _reading(count: int) -> Callable[[], object]:
    wire = pb.RunTurnResponse(
        events=[token(_TURN, index) for index in range(1, count + 1)]
    ).SerializeToString()

    def read() -> list[Draft]:
        reader = AttemptReader(_TURN, Metrics())
        return list(reader.read(pb.RunTurnResponse.FromString(wire).events))

    return read


def _judging(count: int) -> Callable[[], object]:
    """Return a step that brings one batch; every tenth is committed, as at 20 tokens a second."""
    session = Session()
    for record in _opening():
        session.apply(record)
    writer = Writer(
        session, EDGE_A, WriterSettings(), chance=random.Random(7), now=Now(0.0, 0), fresh=True
    )
    writer.receive(ins.Tick(), Now(0.0, 0))
    batch = ins.Received(1, [Draft("token", _DATA, "m1", False, index=1)] * count)
    moments = iter(range(1, 1_000_000_000))

    def judge() -> None:
        now = Now(next(moments) * 0.05, 0)
        for effect in writer.receive(batch, now):
            if isinstance(effect, fx.Append):
                writer.receive(ins.Committed(now.seconds), now)

    return judge


def _token(seq: int) -> Event:
    return Event(1, seq, "token", _DATA, "m1", False)


def _opening() -> list[AnyRecord]:
    start = drafts.turn_start(_TURN, "", attempt=1)
    first = Event(1, 1, start.type, start.data, start.subject)
    return [acquire(1), _record(2, [first])]


def _record(slot: int, run: Sequence[Event]) -> Events:
    return Events(
        slot=slot,
        epoch=1,
        writer=EDGE_A,
        last_seq=run[-1].seq,
        expire_at_ms=LIVE_MS,
        acquire_slot=1,
        events=tuple(run),
    )


async def _fill(journal: Journal) -> float:
    """Write a whole turn, and return the cost of a record of it."""
    await journal.create_session(_SESSION, "uid")
    for record in _opening():
        await journal.append(_SESSION, [record])
    begun = time.process_time()
    for number in range(_RECORDS):
        record = events(3 + number, 2 + number * 10, 10, data=_DATA)
        await journal.append(_SESSION, [record])
    spent = time.process_time() - begun
    done = Event(1, 2 + _RECORDS * 10, "done", "{}")
    await journal.append(_SESSION, [_record(3 + _RECORDS, [done])])
    return spent * 1e6 / _RECORDS


def _registry(journal: Journal) -> Registry:
    return Registry(
        journal=journal,
        runtime=RuntimeDouble(_no_agent),
        clock=ManualClock(),
        telemetry=Metrics(),
        settings=SessionSettings(),
        encode=event_frame,
        chance=random.Random(7),
        writer="edge-of-a-benchmark",
    )


async def _no_agent(attempt: Attempt) -> None:
    raise AssertionError("no turn is started here")


async def _viewer(registry: Registry) -> Viewer:
    viewer = await registry.attach("uid", _SESSION, None, "turn_end")
    assert viewer is not None
    return viewer


async def _cost_of_replay(journal: Journal) -> float:
    registry = _registry(journal)
    (await _viewer(registry)).close()  # opens the room: what it reads is not this viewer's cost
    viewer = await _viewer(registry)
    count, begun = 0, time.process_time()
    while (items := await viewer.next()) is not None:
        count += len(items)
    spent = time.process_time() - begun
    registry._pulse.stop()
    return spent * 1e6 / count


async def _cost_of_showing() -> float:
    """Show events as a driver does, one in each turn of the loop, every tenth with a commit."""
    journal = MemoryJournal(ManualClock())
    await journal.create_session(_SESSION, "uid")
    await journal.append(_SESSION, _opening())
    registry = _registry(journal)
    viewer = await _viewer(registry)
    tail = registry._rooms[_SESSION].tail
    watching = asyncio.create_task(_watch(viewer))
    await asyncio.sleep(0)
    begun, first_seq, count = time.process_time(), tail.last_seq + 1, 20_000
    for seq in range(first_seq, first_seq + count):
        tail.show([_token(seq)])
        await asyncio.sleep(0)
        if seq % 10 == 0:
            tail.commit(seq)
    spent = time.process_time() - begun
    watching.cancel()
    await asyncio.wait([watching])
    registry._pulse.stop()
    return spent * 1e6 / count


async def _watch(viewer: Viewer) -> None:
    while await viewer.next() is not None:
        pass
