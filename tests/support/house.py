"""A small house for session tests: several edges of one process on one journal, under virtual time.

Knows nothing of sockets. A client here is what a correct browser client does: it keeps a cursor, obeys
controls, and keeps the view that a person would see.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field, replace

from edge.core.control import Reset, Rewind
from edge.core.cursor import Cursor
from edge.core.event import TERMINAL, Event
from edge.core.log import AnyRecord, Events
from edge.core.requests import TurnRequest, Until
from edge.journal.memory import MemoryJournal
from edge.ports import Journal, Runtime
from edge.sessions.registry import Registry
from edge.sessions.settings import SessionSettings
from edge.sessions.tail import Shown
from edge.sessions.viewer import Viewer
from tests.support.virtual_loop import elapse

UID = "ada"


class LoopClock:
    """Wall time that moves with the loop's, from a fixed day."""

    def now_ms(self) -> int:
        return 1_800_000_000_000 + int(asyncio.get_running_loop().time() * 1000)


class CountingTelemetry:
    """Keeps counters for assertions."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, name: str) -> None:
        self.counts[name] += 1

    def gauge(self, name: str, value: float) -> None:
        self.counts[name] = int(value)


def frame(event: Event) -> bytes:
    """Stand in for the wire's encoder: one frame, told apart by every field a client can see."""
    return f"{event.epoch}-{event.seq} {event.type} {event.data}\n".encode()


def edge(
    journal: Journal,
    runtime: Runtime,
    settings: SessionSettings | None = None,
    *,
    seed: int = 1,
) -> Registry:
    """Return one edge process's registry."""
    chance = random.Random(seed)
    return Registry(
        journal=journal,
        runtime=runtime,
        clock=LoopClock(),
        telemetry=CountingTelemetry(),
        settings=settings or SessionSettings(),
        encode=frame,
        chance=chance,
        writer=f"edge-{seed}",
    )


def memory_journal() -> MemoryJournal:
    return MemoryJournal(LoopClock())


def request(text: str = "hello", key: str = "k" * 16, **policy: str) -> TurnRequest:
    """Return a turn request; equal arguments are equal requests."""
    parts = ({"type": "text", "text": text},)
    made = TurnRequest(idempotency_key=key, body_hash=text, input=parts)
    return replace(made, **policy)  # type: ignore[arg-type]


async def records(journal: Journal, session_id: str) -> list[AnyRecord]:
    return list((await journal.read(session_id, 0, 10_000)).records)


async def log_events(journal: Journal, session_id: str) -> list[Event]:
    """Return every committed event."""
    found = await records(journal, session_id)
    return [event for r in found if isinstance(r, Events) for event in r.events]


@dataclass
class Client:
    """A correct client: its view after any number of connections equals the log."""

    cursor: Cursor | None = None
    view: list[Event] = field(default_factory=list)
    told: list[object] = field(default_factory=list)
    pings: int = 0
    frames: list[bytes] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.view]

    @property
    def finished(self) -> bool:
        return bool(self.view) and self.view[-1].type in TERMINAL

    def take(self, item: object) -> None:
        """Obey one item of a stream."""
        if not isinstance(item, Shown):
            self.told.append(item)
            self._obey(item)
            return
        event = item.event
        expected = self.view[-1].seq + 1 if self.view else event.seq
        assert event.seq == expected, f"got {event.seq}, expected {expected}"
        self.view.append(event)
        self.frames.append(item.frame)
        self.cursor = Cursor(event.epoch, event.seq)

    def _obey(self, control: object) -> None:
        if isinstance(control, Rewind):
            gone = [event for event in self.view if event.seq > control.to.seq]
            assert not any(event.structural for event in gone), "a rewind may only take back tokens"
            self.view = [event for event in self.view if event.seq <= control.to.seq]
            self.frames = self.frames[: len(self.view)]
            self.cursor = control.to
        elif isinstance(control, Reset):
            self.view.clear()
            self.frames.clear()
            self.cursor = None if control.first_seq <= 1 else Cursor(0, control.first_seq - 1)

    async def watch(
        self,
        registry: Registry,
        session_id: str,
        *,
        stop_after: int | None = None,
        until: Until = "turn_end",
    ) -> bool:
        """Connect once; return whether there was a stream. Leaves after ``stop_after`` events."""
        viewer = await registry.attach(UID, session_id, self.cursor, until)
        if viewer is None:
            return False
        try:
            await self._read(viewer, stop_after)
        finally:
            viewer.close()
        return True

    async def _read(self, viewer: Viewer, stop_after: int | None) -> None:
        seen = 0
        while (items := await viewer.next()) is not None:
            self.pings += not items
            for item in items:
                self.take(item)
                seen += isinstance(item, Shown)
                if stop_after is not None and seen >= stop_after:
                    return

    async def watch_to_end(self, *registries: Registry, session_id: str) -> None:
        """Reconnect, to one edge after the other, until the turn's terminal event is in view."""
        for attempt in range(200):
            if self.finished:
                return
            await self.watch(registries[attempt % len(registries)], session_id)
            await elapse(0.1)
        raise AssertionError(f"the turn never ended: {self.types}")
