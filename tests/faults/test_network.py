"""Every toxic on every link, amid turns of text and tools: it costs time, and no promise."""

from __future__ import annotations

import asyncio
import json
import random
from time import monotonic

import pytest

from tests.faults.client import FOLLOW_SECONDS, Client, saw
from tests.faults.links import SETTINGS, TROUBLES, every_trouble
from tests.faults.scene import Scene
from tests.support.checker import violations
from tests.support.history import History
from tests.support.http_client import connection, exchange, post
from tests.support.processes import POLL_SECONDS
from tests.support.toxics import LimitData, Vanish

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(180)]

NODES = 5


def end_of(history: History) -> str:
    """Return how the turn ended."""
    last = history.events()[-1]
    return str(json.loads(last.data).get("outcome", last.type))


@pytest.mark.proves("S52", "P-SSE-6", "P-HTTP-5", "P-HTTP-11", "P-RUN-2")
async def test_every_toxic_on_every_link_costs_time_and_nothing_else(scene: Scene) -> None:
    await scene.set(NODES, shape="shared", wired=True, **SETTINGS)
    episodes = await every_trouble(scene, random.Random(1))
    for episode in episodes:
        assert episode.failures == [], episode.name
        for history in episode.histories:
            assert violations(history) == [], episode.name
        ends = [end_of(history) for history in episode.histories]
        assert ends == ["completed", "cancelled", "completed"], episode.name
    struck = {episode.name for episode in episodes if episode.ended}
    assert struck == {episode.name for episode in episodes if TROUBLES[episode.trouble].ends}


@pytest.mark.proves("T14")
async def test_a_browser_that_vanished_gives_its_place_back(sqlite_scene: Scene) -> None:
    """Its machine acknowledges nothing, and nothing but pings is sent: only those can tell."""
    scene = sqlite_scene
    await scene.set(1, EDGE_MAX_STREAMS="1", EDGE_STALL_SECONDS="3")
    [port] = scene.ports
    wire = await scene.wire(port)
    client = await scene.started({"say": "First."}, {"wait": 600})
    target = f"/v1/sessions/{client.session_id}"
    cursor = [("Last-Event-ID", client.cursor)]
    async with exchange(wire.port, "GET", f"{target}/events", cursor) as lost:
        await client.listen(lost, saw("message"))
        wire.strike(Vanish())
        assert await is_sent_away(port, client)
        deadline = monotonic() + FOLLOW_SECONDS
        while await is_sent_away(port, client):
            assert monotonic() < deadline, "its place is still taken"
            await asyncio.sleep(POLL_SECONDS)
        turn_id = json.loads(client.screen[0].data)["turn_id"]
        assert (await post(port, f"{target}/turns/{turn_id}/cancel", {})).status == 202
        await client.follow(port)
    await scene.judge(client, cancels=[turn_id])


async def is_sent_away(port: int, client: Client) -> bool:
    """Ask for a stream, and leave at its first word."""
    other = Client(client.session_id)
    await other.watch(port, lambda _client: True)
    return other.told == ["reconnect"]


@pytest.mark.proves("S57")
async def test_a_tidy_end_in_mid_turn_is_no_end_of_the_turn(sqlite_scene: Scene) -> None:
    """To a proxy that speaks HTTP/1.0, every end of a connection is a tidy end of the response."""
    scene = sqlite_scene
    await scene.set(1)
    [port] = scene.ports
    wire = await scene.wire(port)
    client = await scene.started({"say": "word", "words": 60, "word_ms": 20})
    wire.strike(LimitData(1_500), "down")
    while not client.finished:
        lines = f"Host: 127.0.0.1:{wire.port}\r\nLast-Event-ID: {client.cursor}\r\n"
        request = f"GET /v1/sessions/{client.session_id}/events HTTP/1.0\r\n{lines}\r\n"
        async with connection(wire.port, request.encode()) as stream:
            await stream.head()
            await client.listen(stream)
    assert wire.toxic_ends > 3
    await scene.judge(client)
