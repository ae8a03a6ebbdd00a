"""The proxy does what its toxics say, to each connection, until it is healed."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from tests.support.tcp_proxy import TcpProxy, tcp_proxy
from tests.support.toxics import (
    Bandwidth,
    Down,
    Latency,
    LimitData,
    ResetPeer,
    Slicer,
    SlowClose,
    Timeout,
    Toxic,
    Vanish,
    decide_slice,
)

TEXT = "naïve 汉字 🙂 ".encode() * 50
PATIENCE_SECONDS = 10.0

End = tuple[asyncio.StreamReader, asyncio.StreamWriter]
T = TypeVar("T")


@dataclass(slots=True)
class Place:
    """A server behind a proxy, and the connections that have reached it."""

    proxy: TcpProxy
    arrived: asyncio.Queue[End]
    _opened: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self) -> tuple[End, End]:
        """Return a connection's client's end and its server's end."""
        client = await asyncio.open_connection("127.0.0.1", self.proxy.port)
        server = await bounded(self.arrived.get())
        self._opened += [client[1], server[1]]
        return client, server

    def close(self) -> None:
        for writer in self._opened:
            writer.transport.abort()


@asynccontextmanager
async def make_place() -> AsyncIterator[Place]:
    arrived: asyncio.Queue[End] = asyncio.Queue()
    server = await asyncio.start_server(
        lambda reader, writer: arrived.put_nowait((reader, writer)), "127.0.0.1", 0
    )
    async with server, tcp_proxy(server.sockets[0].getsockname()[1]) as proxy:
        made = Place(proxy, arrived)
        yield made
        made.close()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with make_place() as made:
        yield made


async def bounded(wait: Awaitable[T]) -> T:
    return await asyncio.wait_for(wait, PATIENCE_SECONDS)


@pytest.mark.parametrize(
    "toxic", [Latency(0.01, 0.01), Bandwidth(50_000), Slicer(7), SlowClose(0.01)]
)
async def test_a_toxic_that_only_slows_carries_everything_both_ways_and_the_end(
    place: Place, toxic: Toxic
) -> None:
    place.proxy.strike(toxic)
    (reader, writer), (server_reader, server_writer) = await place.connect()
    writer.write(TEXT)
    writer.write_eof()
    assert await bounded(server_reader.read(-1)) == TEXT
    server_writer.write(TEXT)
    server_writer.write_eof()
    assert await bounded(reader.read(-1)) == TEXT


def test_a_slicer_cuts_within_characters_and_loses_no_byte() -> None:
    chance, left, slices = random.Random(1), TEXT, []
    while left:
        size = decide_slice(Slicer(3), len(left), 0, chance).size_bytes
        slices.append(left[:size])
        left = left[size:]
    assert {len(one) for one in slices} == {1, 2, 3}
    assert b"".join(slices) == TEXT
    assert any(one.decode(errors="ignore").encode() != one for one in slices)


def test_a_narrow_link_takes_its_time_for_each_slice_and_a_late_one_stays_in_its_bounds() -> None:
    chance = random.Random(1)
    assert decide_slice(Bandwidth(1_000), 900, 0, chance) == (50, 0.05)
    assert decide_slice(Bandwidth(1_000), 20, 0, chance) == (20, 0.02)
    waits = [decide_slice(Latency(0.3, 0.1), 9, 0, chance).wait_seconds for _ in range(100)]
    assert 0.2 <= min(waits) < max(waits) <= 0.4


async def test_a_limit_closes_tidily_after_exactly_so_many_bytes(place: Place) -> None:
    (reader, _), (server_reader, server_writer) = await place.connect()
    server_writer.write(b"before")
    await bounded(reader.readexactly(6))
    place.proxy.strike(LimitData(10), "down")
    server_writer.write(TEXT)
    assert await bounded(reader.read(-1)) == TEXT[:10]
    assert await bounded(server_reader.read(-1)) == b""


async def test_a_black_hole_keeps_what_it_took_until_it_is_healed(place: Place) -> None:
    (reader, writer), (server_reader, server_writer) = await place.connect()
    place.proxy.strike(Timeout(), "up")
    writer.write(TEXT)
    server_writer.write(b"the other way")
    assert await bounded(reader.readexactly(13)) == b"the other way"
    await place.proxy.heal()
    assert await bounded(server_reader.readexactly(len(TEXT))) == TEXT


async def test_a_black_hole_with_a_time_ends_old_connections_and_new_ones(place: Place) -> None:
    (reader, _), _ = await place.connect()
    place.proxy.strike(Timeout(0.01))
    (later, _), (_, later_writer) = await place.connect()
    later_writer.write(TEXT)
    assert await bounded(later.read(-1)) == b""
    assert await bounded(reader.read(-1)) == b""


@pytest.mark.parametrize("toxic", [Timeout(0.1), ResetPeer(0.1)])
async def test_a_connection_that_is_healed_in_time_does_not_end(place: Place, toxic: Toxic) -> None:
    (reader, _), (_, server_writer) = await place.connect()
    place.proxy.strike(toxic)
    server_writer.write(TEXT)
    await place.proxy.heal()
    assert await bounded(reader.readexactly(len(TEXT))) == TEXT
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(-1), 0.3)


async def test_an_end_that_vanished_acknowledges_nothing(place: Place) -> None:
    (reader, writer), _ = await place.connect()
    place.proxy.strike(Vanish())
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
    writer.write(TEXT)
    with pytest.raises(TimeoutError, match="timed out"):
        await bounded(reader.read(-1))


async def test_what_was_sent_to_an_end_that_vanished_comes_when_it_is_back(place: Place) -> None:
    (_, writer), (server_reader, _) = await place.connect()
    place.proxy.strike(Vanish())
    writer.write(TEXT)
    await writer.drain()
    await place.proxy.heal()
    assert await bounded(server_reader.readexactly(len(TEXT))) == TEXT


async def test_a_reset_is_no_tidy_end(place: Place) -> None:
    (reader, _), (server_reader, _) = await place.connect()
    place.proxy.strike(ResetPeer())
    with pytest.raises(ConnectionResetError):
        await bounded(reader.read(-1))
    with pytest.raises(ConnectionResetError):
        await bounded(server_reader.read(-1))


async def test_a_link_that_is_down_cuts_and_refuses_until_it_is_healed(place: Place) -> None:
    (reader, _), _ = await place.connect()
    place.proxy.strike(Down())
    assert await bounded(reader.read(-1)) == b""
    with pytest.raises(ConnectionRefusedError):
        await place.connect()
    await place.proxy.heal()
    (reader, _), (_, server_writer) = await place.connect()
    server_writer.write(b"back")
    assert await bounded(reader.readexactly(4)) == b"back"


async def test_a_slow_close_passes_the_end_on_late(place: Place) -> None:
    (reader, writer), (server_reader, server_writer) = await place.connect()
    place.proxy.strike(SlowClose(PATIENCE_SECONDS * 2))
    writer.write(b"last words")
    writer.write_eof()
    assert await bounded(server_reader.readexactly(10)) == b"last words"
    server_writer.write(b"heard")
    assert await bounded(reader.readexactly(5)) == b"heard"
    assert not server_reader.at_eof()
    await place.proxy.heal()
    assert await bounded(server_reader.read(-1)) == b""
