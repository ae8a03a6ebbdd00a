"""A TCP proxy that misbehaves on purpose: it stalls, cuts, refuses, and carries one toxic a direction.

Knows nothing of what it carries, and decides nothing: what a toxic does is in ``toxics``. Nothing
that it has taken is lost unless a connection ends: a stalled direction keeps its bytes, as a network
that loses packets does, until it flows again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from tests.support.tcp_link import DIRECTIONS, Direction, Link
from tests.support.toxics import (
    Down,
    ResetPeer,
    Timeout,
    Toxic,
    Vanish,
    close_delay_seconds,
    decide_slice,
    is_silent,
    is_spent,
)

_PIECE_BYTES = 65_536


@dataclass(slots=True)
class TcpProxy:
    """Forwards ``port`` to ``target``; its behaviour may be changed at any time."""

    target: int
    idle_seconds: float | None = None
    """Cut a connection that has carried no byte, either way, for so long."""
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    port: int = 0
    idle_cuts: int = 0
    """How many connections were cut for being idle."""
    toxic_ends: int = 0
    """How many connections were ended by a toxic."""
    _links: set[Link] = field(default_factory=set)
    _flows: dict[Direction, asyncio.Event] = field(default_factory=dict)
    _toxics: dict[Direction, Toxic] = field(default_factory=dict)
    _healed: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def connections(self) -> int:
        return len(self._links)

    async def open(self) -> None:
        """Listen; the second time on the same port as before."""
        for direction in DIRECTIONS:
            self._flows.setdefault(direction, asyncio.Event()).set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Stop listening; what is connected stays. ``open`` listens again."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def stall(self, *directions: Direction) -> None:
        """Carry nothing more, without a word to either end; by default both ways."""
        for direction in directions or DIRECTIONS:
            self._flows[direction].clear()

    def flow(self) -> None:
        """Carry again, also what was kept back."""
        for event in self._flows.values():
            event.set()

    def cut(self) -> None:
        """Drop every connection at once."""
        for link in list(self._links):
            link.abort()

    def strike(self, toxic: Toxic, *directions: Direction) -> None:
        """Put a toxic on a direction, in place of the one that was there; by default on both."""
        self._healed.clear()
        self._toxics.update(dict.fromkeys(directions or DIRECTIONS, toxic))
        if is_silent(toxic):
            self.stall(*directions)
        if isinstance(toxic, Down):
            self.refuse()
        for link in list(self._links):
            self._afflict(link, [toxic])

    async def heal(self) -> None:
        """Take every toxic away; what was kept back is carried at once."""
        self._recover()
        if self._server is None:
            await self.open()

    async def close(self) -> None:
        """Refuse, cut, and wait for what ran here."""
        self.refuse()
        self._recover()
        self.cut()
        # Their links are gone, so they end by themselves.
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _recover(self) -> None:
        self._toxics.clear()
        self._healed.set()
        for link in self._links:
            link.recover()
        self.flow()

    def _afflict(self, link: Link, toxics: Iterable[Toxic]) -> None:
        """Begin what a toxic does to a connection by itself."""
        link.carried.clear()
        for toxic in toxics:
            match toxic:
                case Down():
                    self._end(link.abort)
                case Timeout(float(seconds)):
                    link.end_later(seconds, partial(self._end, link.abort))
                case ResetPeer(seconds):
                    link.end_later(seconds, partial(self._end, link.reset))
                case Vanish():
                    link.vanish()

    def _end(self, end: Callable[[], None]) -> None:
        self.toxic_ends += 1
        end()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        link = Link(writer)
        self._links.add(link)
        try:
            await self._join(link, reader)
        except OSError:
            pass  # the server refuses, or an end is gone: so is the link
        finally:
            link.abort()
            self._links.discard(link)

    async def _join(self, link: Link, reader: asyncio.StreamReader) -> None:
        server_reader, server = await asyncio.open_connection("127.0.0.1", self.target)
        link.join(server)
        self._afflict(link, self._toxics.values())
        self._touch(link)
        up = asyncio.create_task(self._carry(link, reader, server, "up"))
        down = asyncio.create_task(self._carry(link, server_reader, link.client, "down"))
        try:
            await asyncio.gather(up, down)
        finally:
            up.cancel()
            down.cancel()

    async def _carry(
        self,
        link: Link,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        direction: Direction,
    ) -> None:
        try:
            while piece := await source.read(_PIECE_BYTES):
                self._touch(link)
                await self._hand_on(link, piece, sink, direction)
        except OSError:
            await self._hold_up(close_delay_seconds(self._toxics.get(direction)))
            raise
        await self._hold_up(close_delay_seconds(self._toxics.get(direction)))
        # A half that ends passes its end on, and the other may still talk.
        await self._flows[direction].wait()
        sink.write_eof()

    async def _hand_on(
        self, link: Link, piece: bytes, sink: asyncio.StreamWriter, direction: Direction
    ) -> None:
        while piece:
            await self._flows[direction].wait()
            toxic = self._toxics.get(direction)
            carried = link.carried[direction]
            size, wait_seconds = decide_slice(toxic, len(piece), carried, self.chance)
            await self._hold_up(wait_seconds)
            await self._flows[direction].wait()
            sink.write(piece[:size])
            await sink.drain()
            piece = piece[size:]
            link.carried[direction] += size
            if is_spent(toxic, link.carried[direction]):
                self._end(link.close)
                return

    async def _hold_up(self, seconds: float) -> None:
        """Wait, but no longer than the toxic lasts."""
        if seconds:
            try:
                async with asyncio.timeout(seconds):
                    await self._healed.wait()
            except TimeoutError:
                pass

    def _touch(self, link: Link) -> None:
        if self.idle_seconds is None:
            return
        if link.timer is not None:
            link.timer.cancel()
        loop = asyncio.get_running_loop()
        link.timer = loop.call_later(self.idle_seconds, self._cut_idle, link)

    def _cut_idle(self, link: Link) -> None:
        self.idle_cuts += 1
        link.abort()


@asynccontextmanager
async def tcp_proxy(target: int, *, idle_seconds: float | None = None) -> AsyncIterator[TcpProxy]:
    """Run a proxy in front of a port of this machine."""
    proxy = TcpProxy(target, idle_seconds)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
