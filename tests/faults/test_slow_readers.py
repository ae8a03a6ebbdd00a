"""Readers that do not read: they cost a bounded number of bytes, slow nobody, and are closed in time."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import pytest

from tests.faults.client import Client
from tests.faults.scene import Scene
from tests.support.http_client import ask
from tests.support.processes import POLL_SECONDS

pytestmark = pytest.mark.realtime

LONG_WORD = "x" * 2_000
OUTPUT_WORDS = 4_000  # about 9 MB of frames, once as tokens
GROWTH_LIMIT_BYTES = 12 * 1024 * 1024
"""Tail, batches and sockets are bounded; the rest is the interpreter's and the allocator's."""
PATIENCE_SECONDS = 25.0


@contextmanager
def stuck_reader(port: int, session_id: str) -> Iterator[socket.socket]:
    """Ask for a stream with a small window, and never read."""
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * 1024)
        raw.connect(("127.0.0.1", port))
        target = f"/v1/sessions/{session_id}/events?until=follow"
        raw.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        yield raw


async def metric(port: int, name: str) -> int:
    text = (await ask(port, "GET", "/metrics")).body.decode()
    found = re.search(rf"^unbroken_{name} (\d+)$", text, re.MULTILINE)
    assert found is not None, name
    return int(found[1])


async def until_metric(port: int, name: str, value: int) -> None:
    deadline = monotonic() + PATIENCE_SECONDS
    while (now := await metric(port, name)) != value:
        assert monotonic() < deadline, f"{name} is {now}, not {value}"
        await asyncio.sleep(POLL_SECONDS)


@pytest.mark.proves("S75", "S77", "T04", "T30", "P-SSE-17")
async def test_readers_that_never_read_cost_little_slow_nobody_and_are_closed(
    sqlite_scene: Scene,
) -> None:
    scene = sqlite_scene
    await scene.set(1, EDGE_STALL_SECONDS="6")
    port, edge = scene.ports[0], scene.nodes[0].edge
    warm = await scene.started({"say": LONG_WORD, "words": 200, "word_ms": 0})
    await warm.follow(port)
    before = edge.resident_bytes()
    client = await scene.started({"say": LONG_WORD, "words": OUTPUT_WORDS, "word_ms": 0})
    with (
        stuck_reader(port, client.session_id) as stuck,
        stuck_reader(port, client.session_id),
        stuck_reader(port, client.session_id),
    ):
        await client.follow(port)
        assert edge.resident_bytes() - before < GROWTH_LIMIT_BYTES
        await until_metric(port, "viewers_stalled_total", 3)
        await until_metric(port, "streams", 0)
        # Cut without the end of the turn, so that a client comes back with its cursor.
        assert b"event: done" not in what_is_left(stuck)
    again = Client(client.session_id)
    await again.watch(port)
    assert again.screen == client.screen
    await scene.judge(client, again)


def what_is_left(stuck: socket.socket) -> bytes:
    """Read what a stuck connection still holds, to its end or its reset."""
    stuck.settimeout(PATIENCE_SECONDS)
    pieces = []
    try:
        while piece := stuck.recv(65_536):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)
