"""Edges and runtimes behind nginx and HAProxy, with the buffering and time-outs that those have by default."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.clients.script import NodeScript, State, node_script
from tests.faults.client import FOLLOW_SECONDS, NOBODY_THERE, Client, Moment, saw
from tests.faults.scene import Node, Scene, Step
from tests.support.http_client import PATIENCE_SECONDS, Exchange, ask, exchange, post
from tests.support.processes import POLL_SECONDS
from tests.support.reverse_proxy import Front, reverse_proxy

UNTIL_STOPPED: Sequence[Step] = ({"say": "one two three", "word_ms": 5}, {"wait": 3600})
"""Whoever sees a word of it sees it amid the turn."""
DEFAULTS = (Front("nginx"), Front("haproxy"))
GZIP = ("Accept-Encoding", "gzip")
COMPRESSING = (
    Front("nginx", "gzip_types *; gzip_min_length 0;"),
    Front("haproxy", "compression algo gzip\n    compression type text/event-stream"),
)
QUIET_SECONDS = 25.0
PATIENT = (  # less than the silence, more than the interval of pings
    Front("nginx", "proxy_read_timeout 15s;"),
    Front("haproxy", "timeout server 15s\n    timeout client 15s"),
)
IMPATIENT = (  # less than that
    Front("nginx", "proxy_read_timeout 4s;"),
    Front("haproxy", "timeout server 4s"),
)


class Ear:
    """Takes in a body that comes through a proxy, compressed or not."""

    def __init__(self, stream: Exchange) -> None:
        self.stream = stream
        self.heard = b""
        self.compressed = stream.headers.get("content-encoding") == "gzip"
        self._gunzip = zlib.decompressobj(zlib.MAX_WBITS | 16)

    async def until(self, tokens: int, pings: int) -> None:
        """Listen until so much has come."""
        while self.heard.count(b"event: token\n") < tokens or self.heard.count(b": ping\n") < pings:
            piece = await self.stream.data()
            assert piece, f"ended after {self.heard!r}"
            self.heard += self._gunzip.decompress(piece) if self.compressed else piece


async def stop(scene: Scene, port: int, session_id: str) -> str:
    """Stop the session's turn through a port, which may lead to an edge that is gone; return its id."""
    (first, *_) = await scene.events(session_id)
    turn_id = str(json.loads(first.data)["turn_id"])
    target = f"/v1/sessions/{session_id}/turns/{turn_id}/cancel"
    async with asyncio.timeout(FOLLOW_SECONDS):
        while (answer := await post(port, target, {})).status in NOBODY_THERE:
            await asyncio.sleep(POLL_SECONDS)
    assert answer.status == 202, answer
    return turn_id


async def stopped(scene: Scene, port: int, client: Client) -> None:
    """Stop the turn, see its end through the port, and judge all of it."""
    turn_id = await stop(scene, port, client.session_id)
    await client.follow(port)
    await scene.judge(client, cancels=[turn_id])


@pytest.mark.proves("S67", "T16", "T17")
async def test_events_and_pings_come_one_by_one(standing: Scene, tmp_path: Path) -> None:
    async def behind(front: Front) -> None:
        client = await standing.started(*UNTIL_STOPPED)
        with reverse_proxy(front, tmp_path, *standing.ports) as port:
            target = f"/v1/sessions/{client.session_id}/events"
            async with exchange(port, "GET", target, [GZIP]) as stream:
                ear = Ear(stream)
                await ear.until(tokens=3, pings=2)
            # HAProxy obeys ``no-transform``; nginx does not, but hands on at once what it compressed.
            assert ear.compressed == (front == COMPRESSING[0])
            await stopped(standing, port, client)

    await asyncio.gather(*map(behind, (*DEFAULTS, *COMPRESSING)))


@pytest.mark.proves("S68", "P-SSE-18")
async def test_the_answer_to_a_post_comes_one_by_one(standing: Scene, tmp_path: Path) -> None:
    async def behind(front: Front) -> None:
        session_id = await standing.session()
        body = json.dumps({"agent": "script", "input": json.dumps(UNTIL_STOPPED)}).encode()
        headers = [
            ("Accept", "text/event-stream"),
            ("Content-Type", "application/json"),
            ("Idempotency-Key", "one-key-of-one-post"),
        ]
        with reverse_proxy(front, tmp_path, *standing.ports) as port:
            target = f"/v1/sessions/{session_id}/turns"
            async with exchange(port, "POST", target, headers, body) as stream:
                await Ear(stream).until(tokens=3, pings=2)
            await stopped(standing, port, Client(session_id))

    await asyncio.gather(*map(behind, DEFAULTS))


@pytest.mark.proves("T33", "T38")
async def test_two_tabs_behind_one_proxy_are_served_by_two_edges(
    standing: Scene, tmp_path: Path
) -> None:
    for front in DEFAULTS:
        client = await standing.started(*UNTIL_STOPPED)
        target = f"/v1/sessions/{client.session_id}/events"
        with reverse_proxy(front, tmp_path, *standing.ports) as port:
            async with exchange(port, "GET", target) as one, exchange(port, "GET", target) as other:
                await asyncio.gather(*(Ear(tab).until(tokens=3, pings=1) for tab in (one, other)))
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while 0 in [await streams_at(port) for port in standing.ports]:
                        await asyncio.sleep(POLL_SECONDS)  # it is counted now and then
            await stopped(standing, port, client)


@pytest.mark.realtime
@pytest.mark.proves("S68")
async def test_a_runtime_may_stand_behind_an_ingress_that_takes_uploads_whole(
    sqlite_scene: Scene, tmp_path: Path
) -> None:
    scene = sqlite_scene
    runtime = scene.start_runtime()
    steps = ({"tool": "append_note", "args": {"text": "once"}}, *UNTIL_STOPPED)
    ingresses = (
        Front("nginx", grpc=True),
        Front("haproxy", "option http-buffer-request", grpc=True),
    )
    with ExitStack() as stack:
        target = await runtime.port()
        between = [stack.enter_context(reverse_proxy(f, tmp_path, target)) for f in ingresses]
        edges = [scene.start_edge(port) for port in between]
        ports = [await edge.port() for edge in edges]
        scene.nodes += [
            Node(edge, port, runtime, target) for edge, port in zip(edges, ports, strict=True)
        ]
        for at, port in enumerate(ports):
            client = await scene.started(*steps, at=at)
            await client.watch(port, lambda c: saw("tool_end")(c) and saw("token", 3)(c))
            await stopped(scene, port, client)
            assert len(scene.rows(client.session_id)) == 1


@pytest.mark.realtime
@pytest.mark.timeout(120)
@pytest.mark.proves("S66", "T18")
async def test_a_long_silence_outlasts_no_proxy_that_waits_longer_than_for_a_ping(
    sqlite_scene: Scene, tmp_path: Path
) -> None:
    scene = sqlite_scene
    await scene.set(1, EDGE_PING_SECONDS="10")
    steps = ({"wait": QUIET_SECONDS}, {"sleep_tool": 0.1}, {"say": "Done."})
    session_id = (await scene.started(*steps)).session_id

    async def at(front: Front) -> Client:
        client = Client(session_id, patience_seconds=QUIET_SECONDS, behind_proxy=True)
        with reverse_proxy(front, tmp_path, scene.ports[0]) as port:
            await (client.follow(port) if front in IMPATIENT else client.watch(port))
        assert client.finished, front
        return client

    clients = await asyncio.gather(*map(at, (*DEFAULTS, *PATIENT, *IMPATIENT)))
    # The first ping is sent at once; of the others, one comes in every ten seconds.
    assert [client.raw.count(b": ping\n") >= 3 for client in clients] == [True] * 4 + [False] * 2
    await scene.judge(*clients)


@pytest.mark.realtime
@pytest.mark.timeout(150)
@pytest.mark.proves("S04", "S52", "T38", "P-SSE-9")
async def test_a_client_comes_back_through_its_proxy_whatever_happens_to_the_edges(
    sqlite_scene: Scene, tmp_path: Path
) -> None:
    scene = sqlite_scene
    await scene.set(2)
    first, second = scene.nodes
    with ExitStack() as stack:
        tabs = []
        for front in (*DEFAULTS, *IMPATIENT):
            client = await scene.started(*UNTIL_STOPPED)
            client.behind_proxy = True
            tabs.append((client, stack.enter_context(reverse_proxy(front, tmp_path, *scene.ports))))
        await all_follow(tabs, saw("token", 3))
        first.kill("own")
        await all_follow(tabs, saw("turn_start", 2))
        second.edge.signal(signal.SIGSTOP)
        await all_follow(tabs[len(DEFAULTS) :], lambda client: 504 in client.refusals)
        second.kill("own")
        await all_follow(tabs, lambda client: not {502, 503}.isdisjoint(client.refusals))
        scene.start_runtime(first.runtime_port)
        scene.start_edge(first.runtime_port, PORT=str(first.port))
        await all_follow(tabs, saw("turn_start", 3))
        await asyncio.gather(*(stopped(scene, port, client) for client, port in tabs))


@pytest.mark.realtime
@pytest.mark.timeout(150)
@pytest.mark.proves("S70", "S57", "T49")
async def test_the_client_library_comes_back_to_a_proxy_that_reached_no_edge(
    sqlite_scene: Scene, tmp_path: Path
) -> None:
    scene = sqlite_scene
    await scene.set(1)
    (node,) = scene.nodes
    fronts = (*DEFAULTS, Front("nginx", "proxy_http_version 1.1;"))
    async with AsyncExitStack() as stack:
        clients = [await scene.started(*UNTIL_STOPPED) for _ in fronts]
        ports = [stack.enter_context(reverse_proxy(f, tmp_path, node.port)) for f in fronts]
        tabs = [
            await stack.enter_async_context(library_tab(port, client.session_id))
            for port, client in zip(ports, clients, strict=True)
        ]
        await all_show(tabs, lambda said: said["state"] == "live" and turn_of(said) != {})
        node.kill("own")
        await all_show(tabs, lambda said: said.get("status") in NOBODY_THERE)
        scene.start_runtime(node.runtime_port)
        scene.start_edge(node.runtime_port, PORT=str(node.port))
        await all_show(tabs, lambda said: turn_of(said).get("attempt") == 2)
        await asyncio.gather(*(tab.tell("stop") for tab in tabs))
        await all_show(tabs, lambda said: turn_of(said).get("outcome") == "cancelled")
        # By default nginx speaks HTTP/1.0 to an edge, and takes its death for the end of the response.
        assert ["ended" in {said.get("reason") for said in tab.heard} for tab in tabs] == [
            True, False, False,
        ]  # fmt: skip
    for tab, client in zip(tabs, clients, strict=True):
        events = await scene.events(client.session_id)
        assert tab.last["view"]["cursor"].endswith(f"-{events[-1].seq}")


def library_tab(port: int, session_id: str) -> AbstractAsyncContextManager[NodeScript]:
    """Open the client library on a session, through a port."""
    options = {"baseUrl": f"http://127.0.0.1:{port}", "sessionId": session_id}
    return node_script("../faults/library_tab.mjs", options)


async def all_show(tabs: Sequence[NodeScript], what: Callable[[State], bool]) -> None:
    await asyncio.gather(*(tab.until(what) for tab in tabs))


def turn_of(said: State) -> dict[str, Any]:
    """Return the one turn that a tab shows, if it does."""
    return next(iter(said["view"]["turns"]), {})


async def all_follow(tabs: Sequence[tuple[Client, int]], moment: Moment) -> None:
    await asyncio.gather(*(client.follow(port, until=moment) for client, port in tabs))


async def streams_at(port: int) -> int:
    """Return how many streams an edge has open."""
    text = (await ask(port, "GET", "/metrics")).body.decode()
    found = re.search(r"^unbroken_streams (\d+)$", text, re.MULTILINE)
    assert found is not None, text
    return int(found[1])
