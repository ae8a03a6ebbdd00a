"""Users who leave: streams dropped, turns cancelled and calls given up, in number, at any moment.

Knows nothing of what that leaves behind; ``tests/support/footprint.py`` looks.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Awaitable, Callable, Sequence

from edge.ports import AttemptCall, AttemptRef
from edge.telemetry import Metrics
from edge.upstream.client import GrpcRuntime
from edge.upstream.requests import RuntimeOptions
from tests.faults.client import Client, Moment, saw
from tests.support.http_client import PATIENCE_SECONDS, connection, post

AT_ONCE = 40
MOST_READS = 4
SESSIONS = 10
WORDS = json.dumps([{"say": "one two three ", "words": 20_000, "word_ms": 20}])
"""Streams for longer than any test."""
WORDS_PART = {"type": "text", "text": WORDS}
TOOL = json.dumps(
    [
        {"say": "one two three ", "words": 6, "word_ms": 10},
        {"sleep_tool": 60, "safety": "unsafe"},
    ]
)
MOMENTS: Sequence[Moment | None] = (None, saw("token"), saw("tool_start"))
"""When a turn is cancelled: at once, over its text, in its tool."""


async def in_number(count: int, one: Callable[[int], Awaitable[None]]) -> None:
    """Do something so many times, ``AT_ONCE`` of it at a time."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await one(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(count, AT_ONCE)):
            group.create_task(worker())


async def begin_turn(port: int, text: str, key: str) -> tuple[Client, str]:
    """Start a turn in a fresh session; return a client that has seen nothing of it, and its id."""
    session_id = (await post(port, "/v1/sessions", {})).json["session_id"]
    body = {"input": text, "agent": "script"}
    target = f"/v1/sessions/{session_id}/turns"
    answer = await post(port, target, body, ("Idempotency-Key", key))
    assert answer.status == 202, answer
    return Client(session_id, answer.json["cursor"]), str(answer.json["turn_id"])


async def cancel_turn(port: int, session_id: str, turn_id: str) -> None:
    """Cancel a turn."""
    answer = await post(port, f"/v1/sessions/{session_id}/turns/{turn_id}/cancel", {})
    assert answer.status == 202, answer


async def drop_streams(port: int, chance: random.Random, count: int) -> None:
    """Drop so many streams of a few sessions in which a long answer is under way."""
    begun = [await begin_turn(port, WORDS, _fresh(chance)) for _ in range(SESSIONS)]
    ids = itertools.cycle([client.session_id for client, _ in begun])
    await in_number(count, lambda _: drop_a_stream(port, next(ids), chance))
    for client, turn_id in begun:
        await cancel_turn(port, client.session_id, turn_id)
        await client.follow(port)


async def cancel_turns(port: int, chance: random.Random, count: int) -> None:
    """Cancel so many turns, each in a session of its own."""
    await in_number(count, lambda _: cancel_a_turn(port, chance))


def client_of(runtime_port: int) -> GrpcRuntime:
    """Return an edge's client of a runtime; to be closed."""
    return GrpcRuntime(f"127.0.0.1:{runtime_port}", RuntimeOptions(), Metrics())


async def give_up_calls(runtime: GrpcRuntime, chance: random.Random, count: int) -> None:
    """Give up so many calls of a runtime."""
    await in_number(count, lambda _: give_up_a_call(runtime, chance))


async def drop_a_stream(port: int, session_id: str, chance: random.Random) -> None:
    """Ask for a session's events and leave: over the request, before the answer, or in its middle."""
    lines = [f"GET /v1/sessions/{session_id}/events HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += ["Accept: text/event-stream", *chance.choice(([], ["Last-Event-ID: 0-0"])), "", ""]
    request = "\r\n".join(lines).encode()
    reads = chance.randint(-1, MOST_READS)
    sent = request if reads >= 0 else request[: chance.randrange(len(request))]
    async with connection(port, sent) as opened, asyncio.timeout(PATIENCE_SECONDS):
        for number in range(reads):
            piece = await opened.reader.read(65_536)
            assert number or piece.startswith(b"HTTP/1.1 200 "), piece


async def cancel_a_turn(port: int, chance: random.Random) -> None:
    """Start a turn, perhaps look on for a while, stop it, and perhaps see its end."""
    client, turn_id = await begin_turn(port, TOOL, _fresh(chance))
    moment = chance.choice(MOMENTS)
    if moment is not None:
        assert await client.watch(port, moment)
    await cancel_turn(port, client.session_id, turn_id)
    if chance.random() < 0.5:
        await client.follow(port)


async def give_up_a_call(runtime: GrpcRuntime, chance: random.Random) -> None:
    """Run a turn and leave its stream: before its first word, between two, or while one is awaited."""
    ref = AttemptRef(session_id="s", turn_id=_fresh(chance), attempt=1, user_id="u")
    stream = runtime.start(AttemptCall(ref=ref, agent="script", input=[WORDS_PART]))
    for _ in range(chance.randint(0, 2)):
        assert await anext(stream)
    waiting = asyncio.ensure_future(anext(stream, None))
    for _ in range(chance.randint(0, 3)):
        await asyncio.sleep(0)
    stream.cancel()
    await waiting


def _fresh(chance: random.Random) -> str:
    return f"{chance.getrandbits(128):032x}"
