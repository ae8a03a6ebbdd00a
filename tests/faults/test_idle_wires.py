"""Proxies that cut what is idle, and clients that vanish: pings keep a silent tool's stream alive."""

from __future__ import annotations

import asyncio

import pytest

from tests.faults.client import Client, saw
from tests.faults.scene import Scene
from tests.support.http_client import exchange
from tests.support.tcp_proxy import TcpProxy


async def behind(scene: Scene, idle_seconds: float) -> TcpProxy:
    """Put a proxy with little patience in front of the first edge."""
    proxy = await scene.wire(scene.ports[0])
    proxy.idle_seconds = idle_seconds
    return proxy


async def watched_through(scene: Scene, idle_seconds: float, tool_seconds: float) -> Client:
    proxy = await behind(scene, idle_seconds)
    client = await scene.started({"wait": tool_seconds}, {"sleep_tool": 0.1}, {"say": "Done."})
    client.patience_seconds = 30.0  # the proxy's is what is tried
    await client.watch(proxy.port)
    assert proxy.idle_cuts == 0
    assert client.finished
    return client


@pytest.mark.proves("T21", "P-SSE-10")
async def test_a_silent_agent_is_never_cut_by_a_proxy_that_waits_longer_than_a_ping(
    sqlite_scene: Scene,
) -> None:
    await sqlite_scene.set(1, EDGE_PING_SECONDS="0.5")
    client = await watched_through(sqlite_scene, idle_seconds=2.0, tool_seconds=5.0)
    assert client.raw.count(b": ping\n") >= 3
    await sqlite_scene.judge(client)


@pytest.mark.realtime
@pytest.mark.timeout(120)
@pytest.mark.proves("S66", "T18")
async def test_so_it_is_with_the_real_interval_and_a_real_proxys_patience(
    sqlite_scene: Scene,
) -> None:
    await sqlite_scene.set(1, EDGE_PING_SECONDS="10")
    client = await watched_through(sqlite_scene, idle_seconds=15.0, tool_seconds=25.0)
    # The first one is sent at once; of the others, one comes in every ten seconds.
    assert client.raw.count(b": ping\n") >= 3
    await sqlite_scene.judge(client)


@pytest.mark.realtime
@pytest.mark.proves("S04", "S50", "S52", "P-HTTP-12")
async def test_a_proxy_that_cuts_and_refuses_costs_a_client_time_and_nothing_else(
    sqlite_scene: Scene,
) -> None:
    scene = sqlite_scene
    await scene.set(1)
    proxy = await scene.wire(scene.ports[0])
    client = await scene.started({"say": "word", "words": 100, "word_ms": 10}, {"sleep_tool": 0.2})
    for count in (5, 20, 40):
        await client.try_watch(proxy.port, saw("token", count))
        proxy.cut()
        proxy.refuse()
        assert not await client.try_watch(proxy.port)
        await proxy.open()
    await client.follow(proxy.port)
    await scene.judge(client)


@pytest.mark.realtime
async def test_a_client_that_says_it_is_done_sending_is_let_go_and_can_come_back(
    sqlite_scene: Scene,
) -> None:
    """Hypercorn takes a half-closed connection for a client that left."""
    scene = sqlite_scene
    await scene.set(1)
    client = await scene.started({"say": "word", "words": 60, "word_ms": 20})
    target = f"/v1/sessions/{client.session_id}/events"
    async with exchange(scene.ports[0], "GET", target, [("Last-Event-ID", client.cursor)]) as half:
        await client.listen(half, saw("token"))
        half.writer.write_eof()
        await asyncio.wait_for(half.reader.read(), 10)
    await client.follow(scene.ports[0])
    await scene.judge(client)
