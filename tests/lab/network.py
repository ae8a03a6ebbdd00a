"""The network between the browser and both columns' servers: relays bytes, and misbehaves when it is told to.

Knows nothing of what it relays.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
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
    swallowed: bool = False
    """Nothing arrives any more, and nobody is told: as when a device has changed its network."""

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
        self.idle_cuts = 0
        """How many connections were cut for being silent."""
        self._links: set[Link] = set()

    def swallow(self) -> None:
        """Let every connection there is fall silent for good; new ones are as good as ever."""
        for link in self._links:
            link.swallowed = True

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
        carried = asyncio.gather(self._carry_up(link, client[0]), self._carry_down(link, server[0]))
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

    async def _carry_up(self, link: Link, source: StreamReader) -> None:
        async for piece in _pieces(link, source):
            await _hand_on(link.server, piece)
        # Passed on also by a black hole: a server would find out, but not for minutes.
        _end(link.server)

    async def _carry_down(self, link: Link, source: StreamReader) -> None:
        async for piece in _pieces(link, source):
            await self._hand_down(link, piece)
        if not link.swallowed:
            _end(link.client)

    async def _hand_down(self, link: Link, piece: bytes) -> None:
        while piece and (width := self.bytes_per_second) is not None:
            size = max(1, int(width * _SLICE_SECONDS))
            await asyncio.sleep(size / width)
            await _hand_on(link.client, piece[:size])
            link.touched_at = _now()  # slow is not silent
            piece = piece[size:]
        await _hand_on(link.client, piece)

    async def _cut_when_idle(self, link: Link) -> None:
        while (left := link.touched_at + self.idle_seconds - _now()) > 0:
            await asyncio.sleep(left)
        if not link.swallowed:  # a black hole tells nobody anything
            self.idle_cuts += 1
            link.abort()


async def _pieces(link: Link, source: StreamReader) -> AsyncIterator[bytes]:
    """Yield what comes, unless it is swallowed."""
    while piece := await source.read(_PIECE_BYTES):
        link.touched_at = _now()
        if not link.swallowed:
            yield piece


async def _hand_on(sink: StreamWriter, piece: bytes) -> None:
    if sink.is_closing():  # cut while this was on its way
        raise ConnectionAbortedError
    sink.write(piece)
    await sink.drain()


def _end(sink: StreamWriter) -> None:
    if not sink.is_closing():
        sink.write_eof()


def _now() -> float:
    return asyncio.get_running_loop().time()
