"""The lab's network: a server that counts, a client that reads, and trouble between them."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.lab.door import Door
from tests.lab.network import Network

PATIENCE_SECONDS = 30.0
HEAD = b"GET /column/x HTTP/1.1\r\n\r\n"
SEEN = b"GET /x HTTP/1.1\r\nConnection: close\r\n\r\n"
Ends = tuple[StreamReader, StreamWriter]


@asynccontextmanager
async def joined(network: Network) -> AsyncIterator[tuple[Ends, Ends]]:
    """Yield the browser's end and the server's of one connection through a door."""
    arrived: asyncio.Future[Ends] = asyncio.get_running_loop().create_future()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        arrived.set_result((reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    door = Door({"column": lambda: port}, lambda: None, network)
    opened = await door.open("127.0.0.1", 0)
    browser = await asyncio.open_connection(*opened.sockets[0].getsockname())
    browser[1].write(HEAD)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            far = await arrived
            assert await far[0].readexactly(len(SEEN)) == SEEN
            yield browser, far
    finally:
        for _, writer in (browser, *((arrived.result(),) if arrived.done() else ())):
            writer.transport.abort()
        opened.close()
        server.close()
        await door.close()


async def test_bytes_go_both_ways_and_so_does_the_end() -> None:
    async with joined(Network(60)) as (browser, server):
        browser[1].write(b"up")
        server[1].write(b"down")
        assert await server[0].readexactly(2) == b"up"
        assert await browser[0].readexactly(4) == b"down"
        server[1].write_eof()
        assert await browser[0].read() == b""
        browser[1].write_eof()
        assert await server[0].read() == b""


async def test_a_cut_ends_both_sides() -> None:
    network = Network(60)
    async with joined(network) as (browser, server):
        network.cut()
        assert await _end(browser[0]) == b""
        assert await _end(server[0]) == b""


async def test_a_black_hole_swallows_what_comes_and_the_end_of_the_server() -> None:
    network = Network(60)
    async with joined(network) as (browser, server):
        server[1].write(b"seen")
        assert await browser[0].readexactly(4) == b"seen"
        network.swallow()
        server[1].write(b"swallowed")
        server[1].write_eof()
        browser[1].write(b"swallowed, too")
        browser[1].write_eof()
        assert await server[0].read() == b""
        assert await _end(browser[0]) == b""


async def test_new_connections_do_not_fall_into_the_black_hole() -> None:
    network = Network(60)
    async with joined(network):
        network.swallow()
        async with joined(network) as (browser, server):
            server[1].write(b"seen")
            assert await browser[0].readexactly(4) == b"seen"


async def test_what_is_silent_for_too_long_is_cut() -> None:
    network = Network(0.01)
    async with joined(network) as (browser, server):
        assert await _end(browser[0]) == b""
        assert await _end(server[0]) == b""
    assert network.idle_cuts == 1


async def test_nobody_is_told_that_a_black_hole_is_silent() -> None:
    network = Network(0.05)
    async with joined(network) as (browser, _):
        network.swallow()
        reading = asyncio.create_task(browser[0].read())
        done, _pending = await asyncio.wait([reading], timeout=10 * network.idle_seconds)
        assert not done
        reading.cancel()


async def test_a_narrow_way_carries_everything_in_the_end() -> None:
    network = Network(60)
    network.bytes_per_second = 2_000
    async with joined(network) as (browser, server):
        server[1].write(bytes(1_000))
        assert await browser[0].readexactly(200) == bytes(200)
        network.bytes_per_second = None
        assert await browser[0].readexactly(800) == bytes(800)


async def test_what_is_slow_is_not_cut_for_being_silent() -> None:
    network = Network(1.0)
    network.bytes_per_second = 1_000
    async with joined(network) as (browser, server):
        server[1].write(bytes(1_500))
        assert await browser[0].readexactly(1_500) == bytes(1_500)


async def test_nobody_to_go_to_is_a_connection_that_ends() -> None:
    door = Door({}, lambda: None, Network(60))
    opened = await door.open("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*opened.sockets[0].getsockname())
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    assert await asyncio.wait_for(_end(reader), PATIENCE_SECONDS) == b""
    writer.close()
    opened.close()
    await door.close()


async def _end(reader: StreamReader) -> bytes:
    """Read to the end, however it comes."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("size", [1, 100_000])
async def test_any_amount_arrives_whole(size: int) -> None:
    async with joined(Network(60)) as (browser, server):
        server[1].write(bytes(size))
        assert await browser[0].readexactly(size) == bytes(size)
