"""Starts and stops at several edges at once: one turn for one key, and no tool behind a stop."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from edge.core.event import TURN_START
from tests.faults.client import Client, Moment, saw, saw_events
from tests.faults.scene import Scene
from tests.support.http_client import ask, exchange, post

KEY = "one-key-for-everybody"
TOLD_STEPS = (
    {"say": "word", "words": 10, "word_ms": 20},
    {"tool": "append_note", "args": {"text": "first"}},
    {"say": "word", "words": 30, "word_ms": 20},
    {"sleep_tool": 1},
    {"tool": "append_note", "args": {"text": "second"}},
    {"say": "word", "words": 100, "word_ms": 20},
)
MOMENTS: tuple[Moment, ...] = (
    lambda _client: True,
    saw_events(2),
    saw("message"),
    saw("tool_start"),
    saw("tool_end"),
    saw("tool_start", 2),
    saw("tool_end", 2),
    saw("tool_end", 3),
)


async def attempts_started(scene: Scene) -> int:
    texts = [(await ask(port, "GET", "/metrics")).body.decode() for port in scene.ports]
    counts = [re.search(r"^unbroken_attempts_started_total (\d+)$", t, re.MULTILINE) for t in texts]
    return sum(int(count[1]) for count in counts if count is not None)


@pytest.mark.proves("P-HTTP-4", "P-HTTP-5", "P-LOG-11", "S44")
async def test_one_key_sent_twenty_times_to_two_edges_starts_one_turn(standing: Scene) -> None:
    before = await attempts_started(standing)
    session_id = await standing.session()
    steps = ({"tool": "append_note", "args": {"text": "once"}}, {"say": "Noted."})
    answers = await asyncio.gather(
        *(standing.turn(session_id, *steps, at=n % 2, key=KEY) for n in range(20))
    )
    assert {answer.status for answer in answers} == {202}
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    client = Client(session_id)
    await client.follow(*standing.ports)
    posts = [(KEY, answer.json["turn_id"]) for answer in answers]
    history = await standing.judge(client, posts=posts)
    assert [e.type for e in history.events()].count(TURN_START) == 1
    assert await attempts_started(standing) - before == 1
    assert len(standing.rows(session_id)) == 1


async def stopped_at(scene: Scene, moment: Moment) -> str:
    """Stop a turn at the edge that does not run it, and return what the stop was answered."""
    client = await scene.started(*TOLD_STEPS)
    if not moment(client):
        await client.watch(scene.ports[0], moment)
    shown = client.screen
    turn_id = json.loads(shown[0].data)["turn_id"] if shown else await turn_of(scene, client)
    target = f"/v1/sessions/{client.session_id}/turns/{turn_id}/cancel"
    answer = await post(scene.ports[1], target, {})
    assert answer.status == 202, answer
    await client.follow(*scene.ports)
    history = await scene.judge(client, cancels=[turn_id])
    assert client.screen[: len(shown)] == shown
    assert json.loads(client.screen[-1].data)["outcome"] == "cancelled"
    settled = {e.subject for e in history.events() if e.type == "message"}
    assert {e.subject for e in history.events() if e.type == "token"} <= settled
    return str(answer.json["state"])


async def turn_of(scene: Scene, client: Client) -> str:
    return str(json.loads((await scene.events(client.session_id))[0].data)["turn_id"])


@pytest.mark.proves("P-HTTP-10", "P-HTTP-11", "P-EVT-6", "P-LOG-8", "S49", "S55")
async def test_a_stop_at_the_other_edge_holds_at_every_moment(standing: Scene) -> None:
    states = await asyncio.gather(*(stopped_at(standing, moment) for moment in MOMENTS))
    assert set(states) == {"cancelling"}


@pytest.mark.proves("T48", "P-SSE-18")
async def test_a_tab_that_posts_again_when_it_is_shown_sees_the_turn_it_started(
    standing: Scene,
) -> None:
    session_id = await standing.session()
    steps = [
        {"tool": "append_note", "args": {"text": "once"}},
        {"say": "word", "words": 30, "word_ms": 20},
    ]
    body = json.dumps({"input": json.dumps(steps), "agent": "script"}).encode()
    headers = [
        ("Accept", "text/event-stream"),
        ("Content-Type", "application/json"),
        ("Idempotency-Key", KEY),
    ]
    target = f"/v1/sessions/{session_id}/turns"
    hidden, shown = Client(session_id), Client(session_id)
    async with exchange(standing.ports[0], "POST", target, headers, body) as stream:
        await hidden.listen(stream, saw("token", 2))
    async with exchange(standing.ports[1], "POST", target, headers, body) as stream:
        assert stream.headers["idempotency-replayed"] == "true"
        await shown.listen(stream)
    assert shown.finished
    history = await standing.judge(hidden, shown)
    assert [e.type for e in history.events()].count(TURN_START) == 1
    assert len(standing.rows(session_id)) == 1
