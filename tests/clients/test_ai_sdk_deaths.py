"""Chats of the AI SDK amid whose answer the edge is killed: another edge goes on, and nothing acts twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.clients.ai_sdk_chat import PACKAGES, answer, call, ended, texts
from tests.clients.script import NodeScript, node_script
from tests.faults.scene import Scene, Store
from tests.support.processes import Crew

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(180)]

STEPS = (
    {"tool": "append_note", "args": {"text": "once"}},
    {"say": "word", "words": 40, "word_ms": 50},
)


@pytest_asyncio.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    made = Scene(Crew(tmp_path), Store(path=tmp_path / "journal.sqlite3"))
    yield made
    await made.close()


async def converse(scene: Scene, port: int, major: str, killed: asyncio.Barrier) -> None:
    """Ask, lose the edge amid the answer, and come back for the whole of it."""
    chat_id = f"a-chat-of-major-{major}"
    api = f"http://127.0.0.1:{port}/v1/ai-sdk/{major}"
    options = {"packageName": PACKAGES[major], "api": api, "id": chat_id}
    async with node_script("ai_sdk.mjs", options) as chat:
        await call(chat, "sendMessage", {"text": json.dumps(STEPS)}, {"body": {"agent": "script"}})
        await chat.until(lambda state: "word" in texts(state))
        await killed.wait()
        state = await chat.until(ended())
        assert (state["status"], state["error"]["name"]) == ("error", "TypeError")
        await killed.wait()
        await come_back(chat)
    assert len(scene.rows(chat_id)) == 1
    assert [e.type for e in await scene.events(chat_id)].count("done") == 1


async def come_back(chat: NodeScript) -> None:
    """Resume as often as it takes: the other edge has to find out that the first one is dead."""
    state, times = chat.last, 1
    while state["status"] != "ready":
        times += 1
        await call(chat, "resumeStream")
        state = await chat.until(ended(times))
    assert texts(state).split() == ["word"] * 40
    tools = [part for part in answer(state) if part["type"] == "dynamic-tool"]
    assert [tool["state"] for tool in tools] == ["output-available"]
    assert len(state["messages"]) == 2


@pytest.mark.proves("P-AI-4", "P-AI-5", "S05", "S25", "S57")
async def test_an_answer_outlives_the_edge_that_began_it(scene: Scene) -> None:
    await scene.set(2)
    wire = await scene.wire(scene.ports[0])
    barrier = asyncio.Barrier(len(PACKAGES) + 1)

    async def kill_and_replace() -> None:
        await barrier.wait()
        scene.nodes[0].kill("own")
        await barrier.wait()
        wire.target = scene.ports[1]

    chats = [converse(scene, wire.port, major, barrier) for major in PACKAGES]
    async with asyncio.TaskGroup() as group:
        for work in (*chats, kill_and_replace()):
            group.create_task(work)
