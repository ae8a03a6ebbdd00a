"""An owner that is stopped in its tracks and wakes after a take-over: it is fenced, and says nothing."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.faults.client import Client, saw
from tests.faults.scene import Scene
from tests.support.http_client import exchange, post
from tests.support.processes import POLL_SECONDS

STEPS = (
    {"say": "word", "words": 20, "word_ms": 20},
    {"sleep_tool": 1, "safety": "idempotent"},
    {"tool": "append_note", "args": {"text": "once"}},
    {"say": "word", "words": 40, "word_ms": 20},
)


@pytest.mark.proves("S41", "P-LOG-12")
async def test_an_owner_that_wakes_after_a_take_over_writes_nothing_and_hangs_up(
    scene: Scene,
) -> None:
    await scene.set(2, shape=scene.shape)
    node, other = scene.nodes
    old = await scene.started(*STEPS)
    target = f"/v1/sessions/{old.session_id}/events"
    async with exchange(node.port, "GET", target, [("Last-Event-ID", old.cursor)]) as stream:
        await old.listen(stream, saw("tool_start"))
        node.edge.signal(signal.SIGSTOP)
        new = Client(old.session_id)
        await new.follow(other.port)
        before = await scene.store.records(old.session_id)
        node.edge.signal(signal.SIGCONT)
        await old.listen(stream)
        assert old.tidy
    # It answers again by now, from the log, and has added nothing to it.
    again = Client(old.session_id)
    await again.follow(node.port)
    assert await scene.store.records(old.session_id) == before
    await old.follow(node.port)
    await scene.judge(old, new, again)


@pytest.mark.realtime
@pytest.mark.proves("S41", "P-HTTP-11")
async def test_a_stop_that_was_given_while_its_owner_slept_holds_when_it_wakes(
    sqlite_scene: Scene,
) -> None:
    scene = sqlite_scene
    await scene.set(2)
    node, other = scene.nodes
    steps = (
        {"say": "word", "words": 40, "word_ms": 20},
        {"tool": "append_note", "args": {"text": "never"}},
    )
    client = await scene.started(*steps)
    await client.follow(node.port, until=saw("token"))
    node.edge.signal(signal.SIGSTOP)
    turn_id = client.screen[0].data.split('"')[3]
    target = f"/v1/sessions/{client.session_id}/turns/{turn_id}/cancel"
    while (answer := await post(other.port, target, {})).status == 503:
        # It was stopped amid a write, which locks the file for all: let it finish that.
        node.edge.signal(signal.SIGCONT)
        await asyncio.sleep(POLL_SECONDS)
        node.edge.signal(signal.SIGSTOP)
    assert answer.status == 202, answer
    node.edge.signal(signal.SIGCONT)
    await asyncio.gather(client.follow(node.port), Client(client.session_id).follow(other.port))
    await scene.judge(client, cancels=[turn_id])
    assert scene.rows(client.session_id) == []
