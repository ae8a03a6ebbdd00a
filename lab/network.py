"""The network between the browser and both columns' servers: relays bytes, and misbehaves when it is told to.

Knows nothing of what it relays. What it has taken is lost only with its connection: a black hole keeps its bytes, as
TCP does when packets are lost, until they flow again or an end gives up.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_PIECE_BYTES = 16_384
_SLICE_SECONDS = 0.05
"""How much of its bandwidth a narrow network spends on one slice; it may be widened in between."""


@dataclass(slots=True, eq=False)
class Link:
    """A browser's connection, and the one to a server that goes with it."""

    client: StreamWriter
    server: StreamWriter
    touched_at: float
    """Loop time of the last byte, either way."""

    def abort(self) -> None:
        """Drop both halves at once, without goodbye."""
        self.client.transport.abort()
        self.server.transport.abort()


class Network:
    """Everything that is between the two ends, as one; what is done to it is done to every connection."""

    def __init__(self, idle_seconds: float) -> None:
        self.idle_seconds = idle_seconds
        """A connection that carries no byte for so long is cut, as balancers do."""
        self.bytes_per_second: int | None = None
        """How wide the way down is, if it is narrow."""
        self._links: set[Link] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    @property
    def black_hole(self) -> bool:
        return not self._flowing.is_set()

    def swallow(self) -> None:
        """Carry nothing more, and tell neither end."""
        self._flowing.clear()

    def flow(self) -> None:
        """Carry again, also what was kept back."""
        for link in self._links:
            link.touched_at = _now()
        self._flowing.set()

    def cut(self) -> None:
        """Drop every connection."""
        for link in list(self._links):
            link.abort()

    async def join(
        self, client: tuple[StreamReader, StreamWriter], server: tuple[StreamReader, StreamWriter]
    ) -> None:
        """Relay between two ends until both have said their last, or the connection is cut."""
        link = Link(client[1], server[1], _now())
        self._links.add(link)
        carried = asyncio.gather(
            self._carry(link, client[0], server[1], self._hand_on),
            self._carry(link, server[0], client[1], self._hand_down),
        )
        idle = asyncio.create_task(self._cut_when_idle(link))
        try:
            await carried
        except OSError:
            pass  # an end is gone, so the other goes too
        finally:
            carried.cancel()
            idle.cancel()
            link.abort()
            self._links.discard(link)

    async def _carry(
        self,
        link: Link,
        source: StreamReader,
        sink: StreamWriter,
        hand_on: Callable[[StreamWriter, bytes], Awaitable[None]],
    ) -> None:
        while piece := await source.read(_PIECE_BYTES):
            link.touched_at = _now()
            await hand_on(sink, piece)
        await self._flowing.wait()
        if not sink.is_closing():
            sink.write_eof()

    async def _hand_on(self, sink: StreamWriter, piece: bytes) -> None:
        await self._flowing.wait()
        if sink.is_closing():  # cut while this was on its way
            raise ConnectionAbortedError
        sink.write(piece)
        await sink.drain()

    async def _hand_down(self, sink: StreamWriter, piece: bytes) -> None:
        while piece and (width := self.bytes_per_second) is not None:
            size = max(1, int(width * _SLICE_SECONDS))
            await asyncio.sleep(size / width)
            await self._hand_on(sink, piece[:size])
            piece = piece[size:]
        await self._hand_on(sink, piece)

    async def _cut_when_idle(self, link: Link) -> None:
        while (left := link.touched_at + self.idle_seconds - _now()) > 0 or self.black_hole:
            await self._flowing.wait()
            await asyncio.sleep(max(0.0, left))
        link.abort()


def _now() -> float:
    return asyncio.get_running_loop().time()
