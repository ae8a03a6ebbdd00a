"""A turn through real processes: in order, and the same bytes from every cursor and every edge."""

from __future__ import annotations

import pytest

from tests.faults.client import Client, frames_of, saw_events
from tests.faults.scene import Scene

TWO_TOOLS = (
    {"say": "Let me look that up.", "word_ms": 5},
    {"tool": "append_note", "args": {"text": "first \u00e9\u2028\U0001f600"}},
    {"tool": "calculate", "args": {"expression": "6 * 7"}, "tell": True},
    {"say": "Done.", "word_ms": 5},
)


def shape_of(types: list[str]) -> list[str]:
    """Return the types of events, each run of tokens as one."""
    return [kind for at, kind in enumerate(types) if kind != "token" or types[at - 1] != "token"]


async def frames_after(port: int, session_id: str, cursor: str) -> list[bytes]:
    client = Client(session_id, cursor)
    await client.watch(port)
    return frames_of(client.raw)


@pytest.mark.proves("P-SSE-5", "P-SSE-6", "P-SSE-8", "T38", "S06")
async def test_a_turn_comes_in_order_and_is_replayed_byte_for_byte_from_everywhere(
    standing: Scene,
) -> None:
    scene = standing
    restarted = scene.start_edge(scene.nodes[0].runtime_port)
    client = await scene.started(*TWO_TOOLS)
    await client.watch(scene.ports[0])
    assert shape_of(client.types) == [
        "turn_start", "token", "message", "tool_start", "tool_end", "tool_start", "tool_end",
        "token", "message", "token", "message", "done",
    ]  # fmt: skip
    live = frames_of(client.raw)
    for port in (*scene.ports, await restarted.port()):
        for position, event in enumerate([None, *client.screen[:-1]]):
            cursor = event.id if event else "0-0"
            assert await frames_after(port, client.session_id, cursor) == live[position:]
        assert not await client.watch(port)
    restarted.kill()
    await scene.judge(client)


@pytest.mark.proves("P-SSE-6", "P-SSE-9", "T31", "T32")
async def test_a_socket_dropped_after_every_kth_event_loses_and_repeats_nothing(
    standing: Scene,
) -> None:
    scene = standing
    whole = await scene.started(*TWO_TOOLS)
    await whole.watch(scene.ports[0])
    for k in range(1, len(whole.screen)):
        client = await scene.started(*TWO_TOOLS, at=k % 2)
        frames: list[bytes] = []
        connections = k
        while not client.finished:
            await client.watch(scene.ports[connections % 2], saw_events(k))
            frames += frames_of(client.raw)[: client.heard_here]
            connections += 1
        assert shape_of(client.types) == shape_of(whole.types)
        again = Client(client.session_id)
        await again.watch(scene.ports[k % 2])
        assert frames == frames_of(again.raw)
        assert len(scene.rows(client.session_id)) == 1
        await scene.judge(client, again)


@pytest.mark.proves("S26")
async def test_an_answer_of_before_is_not_told_again_amid_the_next_one(standing: Scene) -> None:
    client = await standing.started({"say": "The first answer."})
    await client.watch(standing.ports[0])
    (first,) = (event for event in client.screen if event.type == "message")
    answer = await standing.turn(client.session_id, {"say": "The second.", "words": 30})
    assert answer.status == 202
    await client.watch(standing.ports[0], saw_events(5))
    await client.watch(standing.ports[1], saw_events(5))
    await client.follow(*standing.ports)
    assert list(client.log.heard()).count(first) == 1
    assert [event.type for event in client.screen].count("done") == 2
    await standing.judge(client)
