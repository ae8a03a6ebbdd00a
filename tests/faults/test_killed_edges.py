"""An owner killed with -9 at the worst moments: the other edge ends the turn, and nothing acts twice.

Four turns run on the edge that is killed, each caught at another moment: amid its text, amid a tool
that is safe to repeat, amid one that is not, and between a committed ``tool_start`` and the release
of the tool, which never arrives because the wire to the runtime is stalled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from tests.faults.client import Client, saw
from tests.faults.scene import Scene, Shape, Step
from tests.support.history import History

TEXT: Sequence[Step] = (
    {"tool": "append_note", "args": {"text": "before"}},
    {"say": "word", "words": 60, "word_ms": 50},
)
SAFE_TOOL: Sequence[Step] = ({"sleep_tool": 2, "safety": "idempotent"}, {"say": "slept"})
UNSAFE_TOOL: Sequence[Step] = (
    {"tool": "append_note", "args": {"text": "before"}},
    {"sleep_tool": 5, "safety": "unsafe", "tell": True},
)
AT_THE_GATE: Sequence[Step] = (
    {"say": "word", "words": 8, "word_ms": 50},
    {"tool": "append_note", "args": {"text": "once"}, "tell": True},
)


async def watched(scene: Scene, steps: Sequence[Step], kind: str, count: int = 1) -> Client:
    """Start a turn on the first edge and watch it there up to a moment."""
    client = await scene.started(*steps)
    await client.watch(scene.ports[0], saw(kind, count))
    return client


async def stopped_at_the_gate(scene: Scene) -> Client:
    client = await watched(scene, AT_THE_GATE, "token")
    wire = scene.nodes[0].wire
    assert wire is not None
    wire.stall("up")
    await client.watch(scene.ports[0], saw("tool_start"))
    return client


def outcomes(history: History) -> list[str]:
    return [json.loads(e.data)["outcome"] for e in history.events() if e.type == "tool_end"]


@pytest.mark.proves("S05", "S36", "S40", "P-LOG-13", "P-RUN-4", "P-RUN-6", "P-EVT-5")
async def test_the_other_edge_ends_the_turns_of_a_killed_one(scene: Scene) -> None:
    await ends_the_turns_of_a_killed_one(scene, scene.shape)


@pytest.mark.realtime
async def test_so_it_does_where_only_the_edge_dies_or_its_runtime_too(scene: Scene) -> None:
    await ends_the_turns_of_a_killed_one(scene, "own" if scene.shape == "shared" else "shared")


async def ends_the_turns_of_a_killed_one(scene: Scene, shape: Shape) -> None:
    await scene.set(2, shape=shape, wired=True)
    text, safe, unsafe = await asyncio.gather(
        watched(scene, TEXT, "token", 3),
        watched(scene, SAFE_TOOL, "tool_start"),
        watched(scene, UNSAFE_TOOL, "tool_start", 2),
    )
    gate = await stopped_at_the_gate(scene)
    scene.nodes[0].kill(shape)
    clients = (text, safe, unsafe, gate)
    await asyncio.gather(*(client.follow(scene.ports[1]) for client in clients))
    told = [outcomes(await scene.judge(client)) for client in clients]
    assert told == [["succeeded"], ["succeeded"], ["succeeded", "unknown"], ["unknown"]]
    assert [len(scene.rows(c.session_id)) for c in (text, unsafe)] == [1, 1]
    assert len(scene.rows(gate.session_id)) == 0


@pytest.mark.proves("P-SSE-11", "P-LOG-7")
async def test_tokens_that_died_with_their_writer_are_taken_back(scene: Scene) -> None:
    await scene.set(2, shape=scene.shape, wired=True)
    client = await watched(scene, ({"say": "word", "words": 100, "word_ms": 20},), "token", 5)
    with scene.store_out_of_reach(scene.nodes[0]):
        await client.watch(scene.ports[0], saw("token", len(client.screen) + 20))
        scene.nodes[0].kill(scene.shape)
    durable = (await scene.events(client.session_id))[-1].seq
    phantoms = [event.id for event in client.screen if event.seq > durable]
    await client.follow(scene.ports[1])
    assert client.told.count("rewind") == 1
    assert phantoms
    assert not set(phantoms) & {event.id for event in client.screen}
    history = await scene.judge(client)
    assert [(e.epoch, e.seq) for e in client.screen] == [(e.epoch, e.seq) for e in history.events()]
