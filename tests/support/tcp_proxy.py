"""A TCP proxy that misbehaves on purpose: it stalls, delays, cuts and refuses.

Knows nothing of what it carries. Nothing that it has taken is lost unless it cuts: a stalled
direction keeps its bytes, as a network that loses packets does, until it flows again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["up", "down"]
"""``up`` is from the client to the server."""

_PIECE_BYTES = 65_536


@dataclass(slots=True, eq=False)
class Link:
    """One connection through the proxy."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    timer: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        """Drop both halves at once."""
        if self.timer is not None:
            self.timer.cancel()
        for half in (self.client, self.server):
            if half is not None:
                half.transport.abort()


@dataclass(slots=True)
class TcpProxy:
    """Forwards ``port`` to ``target``; its behaviour may be changed at any time."""

    target: int
    idle_seconds: float | None = None
    """Cut a connection that has carried no byte, either way, for so long."""
    delay_seconds: float = 0.0
    """How long every piece is held up."""
    port: int = 0
    idle_cuts: int = 0
    """How many connections were cut for being idle."""
    _links: set[Link] = field(default_factory=set)
    _flows: dict[Direction, asyncio.Event] = field(default_factory=dict)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def connections(self) -> int:
        return len(self._links)

    async def open(self) -> None:
        """Listen; the second time on the same port as before."""
        for direction in ("up", "down"):
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
        for direction in directions or ("up", "down"):
            self._flows[direction].clear()

    def flow(self) -> None:
        """Carry again, also what was kept back."""
        for event in self._flows.values():
            event.set()

    def cut(self) -> None:
        """Drop every connection at once."""
        for link in list(self._links):
            link.abort()

    async def close(self) -> None:
        """Refuse, cut, and wait for what ran here."""
        self.refuse()
        self.flow()
        self.cut()
        # Their links are gone, so they end by themselves.
        await asyncio.gather(*self._tasks, return_exceptions=True)

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
        server_reader, link.server = await asyncio.open_connection("127.0.0.1", self.target)
        self._touch(link)
        up = asyncio.create_task(self._carry(link, reader, link.server, "up"))
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
        while piece := await source.read(_PIECE_BYTES):
            self._touch(link)
            await _hold_up(self.delay_seconds)
            await self._flows[direction].wait()
            sink.write(piece)
            await sink.drain()
        # A half that ends passes its end on, and the other may still talk.
        await self._flows[direction].wait()
        sink.write_eof()

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


async def _hold_up(seconds: float) -> None:
    if seconds:
        done = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(seconds, done.set_result, None)
        await done


@asynccontextmanager
async def tcp_proxy(target: int, *, idle_seconds: float | None = None) -> AsyncIterator[TcpProxy]:
    """Run a proxy in front of a port of this machine."""
    proxy = TcpProxy(target, idle_seconds)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
