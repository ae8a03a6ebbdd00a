"""Edges whose clocks are an hour ahead, an hour behind, and twice as fast, beside one that is right.

They share sessions: turns, viewers, cancels and page loads cross from each to the right one and
back, and each takes over and is taken over. Knows nothing of who asks for it, and asserts that no
session breaks a promise and that stamps are wrong by no more than their writer's clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tests.faults.client import Client, saw
from tests.faults.scene import Node, Scene, Step
from tests.support.clocks import (
    AHEAD,
    BEHIND,
    DOUBLE_SPEED,
    HOUR_MS,
    Clock,
    told_by,
)
from tests.support.history import History
from tests.support.http_client import ask, post

WRONG: Sequence[Clock] = (AHEAD, BEHIND, DOUBLE_SPEED)
RIGHT = 0
"""The edge that is right comes first."""
RETENTION_MS = 24 * HOUR_MS
SLACK_MS = 10 * 60_000
"""Longer than any of this takes, even twice as fast."""
TOOLS: Sequence[Step] = (
    {"say": "word", "words": 10, "word_ms": 20},
    {"tool": "append_note", "args": {"text": "once"}},
    {"sleep_tool": 0.5, "safety": "unsafe"},
    {"say": "end"},
)
LONG_TOOL: Sequence[Step] = ({"say": "word"}, {"sleep_tool": 60, "safety": "unsafe"})
LONG_TEXT: Sequence[Step] = (
    {"tool": "append_note", "args": {"text": "before"}},
    {"say": "word", "words": 300, "word_ms": 40},
)


async def open_scene(scene: Scene) -> None:
    """Start one edge that is right, and one for each wrong clock."""
    nodes = [start(scene, {}), *(start(scene, told_by(clock)) for clock in WRONG)]
    scene.nodes += await asyncio.gather(*nodes)


async def start(scene: Scene, variables: Clock) -> Node:
    """Start an edge with a runtime of its own; only the edge goes by a wrong clock."""
    runtime = scene.start_runtime()
    runtime_port = await runtime.port()
    edge = scene.start_edge(runtime_port, **variables)
    return Node(edge, await edge.port(), runtime, runtime_port)


async def a_turn_is_seen_at_both(scene: Scene, owner: int, other: int) -> History:
    """Run a turn at one edge that is watched at both, and load the page from both."""
    first = await scene.started(*TOOLS, at=owner)
    second, third = Client(first.session_id), Client(first.session_id)
    here, there = scene.ports[owner], scene.ports[other]
    await asyncio.gather(first.follow(here), second.follow(there), third.follow(there, here))
    target = f"/v1/sessions/{first.session_id}"
    pages = [await ask(port, "GET", target) for port in (here, there)]
    assert pages[0].status == 200 and pages[0].json == pages[1].json
    return await scene.judge(first, second, third)


async def a_cancel_crosses(scene: Scene, owner: int, other: int) -> History:
    """Cancel a turn amid its tool at the edge that does not run it."""
    session_id = await scene.session(owner)
    turn_id = (await scene.turn(session_id, *LONG_TOOL, at=owner)).json["turn_id"]
    client = Client(session_id)
    await client.watch(scene.ports[owner], saw("tool_start"))
    target = f"/v1/sessions/{session_id}/turns/{turn_id}/cancel"
    assert (await post(scene.ports[other], target, {})).status == 202
    await client.follow(scene.ports[other])
    return await scene.judge(client, cancels=[turn_id])


async def are_shared(scene: Scene) -> list[History]:
    """Let every wrong edge share turns with the right one, in both directions."""
    wrong = range(1, len(scene.nodes))
    pairs = [pair for at in wrong for pair in ((at, RIGHT), (RIGHT, at))]
    works = [
        work(scene, *pair) for work in (a_turn_is_seen_at_both, a_cancel_crosses) for pair in pairs
    ]
    return await asyncio.gather(*works)


async def begun(scene: Scene, owner: int) -> Client:
    """Start a long turn, and watch it there until its text is under way."""
    client = await scene.started(*LONG_TEXT, at=owner)
    await client.watch(scene.ports[owner], saw("token"))
    return client


async def goes_on(scene: Scene, client: Client, successor: int) -> History:
    await client.follow(scene.ports[successor])
    return await scene.judge(client)


async def are_taken_over(scene: Scene) -> list[History]:
    """Kill every wrong edge amid a turn: the right one ends those turns.

    On SQLite the store's clock is each process's own. The renewals of the edge that is ahead lie in the future there.
    """
    wrong = range(1, len(scene.nodes))
    clients = await asyncio.gather(*(begun(scene, at) for at in wrong))
    for node in scene.nodes[1:]:
        node.kill("own")
    return await asyncio.gather(*(goes_on(scene, client, RIGHT) for client in clients))


async def take_over(scene: Scene) -> list[History]:
    """Kill the right edge amid turns of its: each wrong one ends a turn of those."""
    clients = await asyncio.gather(*(begun(scene, RIGHT) for _ in WRONG))
    scene.nodes[RIGHT].kill("own")
    works = [goes_on(scene, client, at) for at, client in enumerate(clients, 1)]
    return await asyncio.gather(*works)


def stamps_are_sane(history: History) -> None:
    """Assert that what a record says of time is wrong by no more than its writer's clock."""
    now_ms, expiry_ms = time.time_ns() // 1_000_000, 0
    for record in history.records:
        assert abs(record.expire_at_ms - RETENTION_MS - now_ms) < HOUR_MS + SLACK_MS
        assert record.expire_at_ms >= expiry_ms
        expiry_ms = record.expire_at_ms
    for event in history.events():
        assert abs(event.at_ms - now_ms) < HOUR_MS + SLACK_MS


async def live_by_wrong_clocks(scene: Scene) -> list[History]:
    """Share turns, take them over from wrong edges and by wrong edges; return every history."""
    await open_scene(scene)
    histories = await are_shared(scene)
    histories += await are_taken_over(scene)
    replaced = [start(scene, told_by(clock)) for clock in WRONG]
    scene.nodes[1:] = await asyncio.gather(*replaced)
    histories += await take_over(scene)
    for history in histories:
        stamps_are_sane(history)
    return histories
