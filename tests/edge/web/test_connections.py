"""What a connection costs once its client has gone: nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.http_client import PATIENCE_SECONDS, ask
from tests.support.live_edge import served

POLL_SECONDS = 0.02
FDS = Path("/proc/self/fd")


def descriptors() -> int:
    return len(list(FDS.iterdir()))


@pytest.mark.skipif(not FDS.exists(), reason="descriptors are counted in /proc")
async def test_a_connection_that_its_client_closes_gives_its_descriptor_back() -> None:
    async with served(object()) as port:
        await ask(port, "GET", "/healthz")
        before = descriptors()
        for _ in range(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert await asyncio.wait_for(reader.read(4096), PATIENCE_SECONDS)
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while descriptors() > before + 3:
                await asyncio.sleep(POLL_SECONDS)


@pytest.mark.parametrize("target", ["http://a:b@127.0.0.1/healthz", "http://[::1/v1", "*"])
async def test_a_target_that_is_no_path_is_refused(target: str) -> None:
    async with served(object()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        status = await asyncio.wait_for(reader.readline(), PATIENCE_SECONDS)
        assert status.startswith(b"HTTP/1.1 400")
        writer.close()
