"""Processes that are told to stop, and runtimes that die: turns are handed over and go on."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from contextlib import closing

import pytest

from tests.faults.client import Client, saw
from tests.faults.scene import Scene
from tests.support.history import History
from tests.support.http_client import exchange

TEXT = ({"say": "word", "words": 150, "word_ms": 20},)
TOOL = (
    {"tool": "append_note", "args": {"text": "once"}},
    {"sleep_tool": 1, "safety": "unsafe"},
    {"say": "word", "words": 40, "word_ms": 20},
)


def events_of(client: Client) -> str:
    return f"/v1/sessions/{client.session_id}/events"


def attempts(history: History) -> list[int]:
    return [json.loads(e.data)["attempt"] for e in history.events() if e.type == "turn_start"]


@pytest.mark.proves("S79", "T09", "P-SSE-15", "P-RUN-11")
async def test_a_container_that_is_told_to_stop_hands_its_turns_over(scene: Scene) -> None:
    await scene.set(2, shape=scene.shape)
    node, other = scene.nodes
    text, tool = await scene.started(*TEXT), await scene.started(*TOOL)
    await tool.watch(node.port, saw("tool_start", 2))
    async with exchange(node.port, "GET", events_of(text), [("Last-Event-ID", "0-0")]) as stream:
        await text.listen(stream, saw("token", 3))
        node.edge.signal(signal.SIGTERM)
        if scene.shape == "own":
            node.runtime.signal(signal.SIGTERM)
        await text.listen(stream)
        assert (text.tidy, text.told[-1]) == (True, "reconnect")
        assert stream.parser.retry_ms is not None
    assert not text.finished
    assert await node.edge.exit_code() == 0
    if scene.shape == "own":
        assert await node.runtime.exit_code() == 0
    await asyncio.gather(text.follow(other.port), tool.follow(other.port))
    for client in (text, tool):
        await scene.judge(client)
    # The owner waited for the running tool, so its outcome is known.
    ends = [json.loads(e.data)["outcome"] for e in tool.screen if e.type == "tool_end"]
    assert ends == ["succeeded", "succeeded"]


@pytest.mark.realtime
@pytest.mark.proves("S79", "P-SSE-15")
async def test_an_edge_that_cannot_write_any_more_leaves_in_time_and_tells_its_readers(
    sqlite_scene: Scene,
) -> None:
    scene = sqlite_scene
    await scene.set(2, shape="shared")
    node, other = scene.nodes
    text = await scene.started(*TEXT)
    async with exchange(node.port, "GET", events_of(text), [("Last-Event-ID", "0-0")]) as stream:
        await text.listen(stream, saw("token"))
        assert scene.store.path is not None
        with closing(sqlite3.connect(scene.store.path, isolation_level=None)) as intruder:
            intruder.execute("BEGIN IMMEDIATE")
            node.edge.signal(signal.SIGTERM)
            await text.listen(stream)
            assert (text.tidy, text.told[-1]) == (True, "reconnect")
            assert await node.edge.exit_code() == 0
    await text.follow(other.port)
    await scene.judge(text)


@pytest.mark.proves("S79")
async def test_an_edge_that_drains_does_not_take_back_what_it_handed_over(
    sqlite_scene: Scene,
) -> None:
    scene = sqlite_scene
    await scene.set(2, shape="shared")
    node, other = scene.nodes
    # The one with the tool makes the drain last long enough.
    text, tool = await scene.started(*TEXT), await scene.started(*TOOL)
    await tool.watch(node.port, saw("tool_start", 2))
    async with exchange(node.port, "GET", events_of(text), [("Last-Event-ID", "0-0")]) as stream:
        await text.listen(stream, saw("token"))
        node.edge.signal(signal.SIGTERM)
        await text.listen(stream)
    assert await node.edge.exit_code() == 0
    await text.follow(other.port)
    assert attempts(await scene.judge(text)) == [1, 2]


@pytest.mark.realtime
@pytest.mark.proves("S59", "P-RUN-2", "T27")
async def test_a_runtime_that_dies_or_drains_and_comes_back_goes_on_with_its_turns(
    sqlite_scene: Scene,
) -> None:
    scene = sqlite_scene
    await scene.set(1)
    node = scene.nodes[0]
    for number in (signal.SIGKILL, signal.SIGTERM):
        client = await scene.started(*TEXT)
        viewer = Client(client.session_id)
        following = asyncio.create_task(viewer.follow(node.port))
        await client.watch(node.port, saw("token", 3))
        node.runtime.signal(number)
        await node.runtime.exit_code()
        node.runtime = scene.start_runtime(node.runtime_port)
        await client.follow(node.port)
        await following
        history = await scene.judge(client, viewer)
        assert attempts(history)[:2] == [1, 2]
        assert json.loads(client.screen[-1].data)["outcome"] == "completed"
        # One connection was enough: the edge lived through it all.
        assert viewer.told.count("caught_up") == 1
