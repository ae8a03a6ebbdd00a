"""The events of one attempt on their way to the stream: packed while they wait, bounded in number.

Knows nothing of protobuf or gRPC. One reader. Writing never waits, so that an event and the change
it tells of are one step; who is about to write first waits for ``room``. The bound is therefore
soft by one event for each branch that writes at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from agent_runtime.events import Event, Heartbeat, Payload, TurnRef

MAX_EVENTS = 1024
MAX_WEIGHT = 256 * 1024
"""Characters that may wait while the edge reads slowly; then the agent, and so the model, waits."""
PACK_WEIGHT = 256 * 1024
"""Characters in one response: at most 1 MiB of UTF-8, unless a single event is larger."""


class Outbox:
    """Events between the agent that writes them and the stream that reads them."""

    def __init__(self, *, max_events: int = MAX_EVENTS, max_weight: int = MAX_WEIGHT) -> None:
        self._max_events = max_events
        self._max_weight = max_weight
        self._events: deque[Event] = deque()
        self._weight = 0
        self._closed = False
        self.last_read_index = 0
        """Index of the last event that the reader took."""
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    @property
    def full(self) -> bool:
        """Whether a writer should wait."""
        return not self._writable.is_set()

    def put(self, event: Event) -> None:
        """Add an event. Once closed, it is dropped: the attempt has said its last word."""
        if self._closed:
            return
        self._events.append(event)
        self._weight += event.weight
        self._readable.set()
        self._update_room()

    async def room(self) -> None:
        """Wait until an event may be added."""
        while self.full:
            await self._writable.wait()

    def close(self) -> None:
        """End the stream after the events that are in. Wakes everybody who waits. Idempotent."""
        self._closed = True
        self._readable.set()
        self._writable.set()

    async def next_pack(self) -> list[Event]:
        """Return the events that are ready, in order; wait for one; empty at the end."""
        await self._readable.wait()
        pack: list[Event] = []
        weight = 0
        while self._events and (not pack or weight + self._events[0].weight <= PACK_WEIGHT):
            event = self._events.popleft()
            weight += event.weight
            pack.append(event)
            self.last_read_index = event.index
        self._weight -= weight
        if not self._events and not self._closed:
            self._readable.clear()
        self._update_room()
        return pack

    def _update_room(self) -> None:
        full = len(self._events) >= self._max_events or self._weight >= self._max_weight
        if full and not self._closed:
            self._writable.clear()
        else:
            self._writable.set()


class Emitter:
    """Gives payloads their place in the attempt and puts them into the outbox.

    Invariant: indices run from 1 without a gap. Nothing is emitted once it is sealed.
    """

    def __init__(
        self, turn: TurnRef, outbox: Outbox, *, author: str, wall_clock: Callable[[], float]
    ) -> None:
        self._turn = turn
        self._outbox = outbox
        self._author = author
        self._wall_clock = wall_clock
        self._heartbeats = 0
        self.index = 0
        self.sealed = False
        self.complete = False
        """Whether a last word was said, rather than the attempt given up."""

    @property
    def full(self) -> bool:
        """Whether the edge reads more slowly than the agent writes."""
        return self._outbox.full

    async def room(self) -> None:
        """Wait until an event may be emitted."""
        await self._outbox.room()

    def emit(self, payload: Payload) -> int:
        """Emit an event and return its index. Does nothing after the last word."""
        if self.sealed:
            return self.index
        self.index += 1
        self._outbox.put(self._event(payload, self.index, f"{self.index}"))
        return self.index

    def seal(self, payload: Payload) -> None:
        """Emit the attempt's last event and end the stream after it."""
        self.emit(payload)
        self.sealed = self.complete = True
        self._outbox.close()

    def heartbeat(self, running: tuple[str, ...]) -> Event:
        """Return a sign of life for the reader: it repeats the index that was read last."""
        self._heartbeats += 1
        index = self._outbox.last_read_index
        return self._event(Heartbeat(running), index, f"{index}h{self._heartbeats}")

    def _event(self, payload: Payload, index: int, place: str) -> Event:
        turn = self._turn
        return Event(
            payload=payload,
            attempt=turn.attempt,
            index=index,
            event_id=f"{turn.turn_id}.{turn.attempt}.{place}",
            author=self._author,
            emitted_at=self._wall_clock(),
        )
