"""Users at work while edges are killed, paused and cut off at random: every history is judged.

The seed of a failing storm is in the test's name; what happens when is up to the machine.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

import h11
import pytest

from tests.faults.client import FOLLOW_SECONDS, Client
from tests.faults.scene import Node, Scene, Step
from tests.support.http_client import Answer, post
from tests.support.processes import POLL_SECONDS

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(240)]

USERS = 6
CANCEL_SHARE = 0.2
BLOWS = 6
BLOW_PAUSE_SECONDS = 1.5
LONG_PAUSE_SECONDS = 6.0
"""Longer than the lease."""


@dataclass(slots=True)
class User:
    """Somebody who asks one thing after the other, and stops an answer now and then."""

    scene: Scene
    chance: random.Random
    client: Client
    posts: list[tuple[str, str]] = field(default_factory=list)
    cancels: list[str] = field(default_factory=list)

    async def work(self, over: asyncio.Event) -> None:
        while not over.is_set():
            number = len(self.posts) + 1
            key = f"{self.client.session_id[:12]}-turn-{number}"
            turn_id = await self._ask(key)
            self.posts.append((key, turn_id))
            following = asyncio.create_task(self._follow(turn_id))
            if self.chance.random() < CANCEL_SHARE:
                await _pass(self.chance.random() * 2)
                if (await self._send(f"/turns/{turn_id}/cancel", {})).status == 202:
                    self.cancels.append(turn_id)
            await following

    async def _ask(self, key: str) -> str:
        """Post until somebody answers; the key makes that safe."""
        body = {"input": _script(self.chance), "agent": "script"}
        answer = await self._send("/turns", body, ("Idempotency-Key", key))
        assert answer.status == 202, answer
        return str(answer.json["turn_id"])

    async def _send(self, path: str, body: object, *headers: tuple[str, str]) -> Answer:
        target = f"/v1/sessions/{self.client.session_id}{path}"
        deadline = monotonic() + FOLLOW_SECONDS
        while monotonic() < deadline:
            try:
                answer = await post(self.chance.choice(self.scene.ports), target, body, *headers)
            except (OSError, h11.RemoteProtocolError, TimeoutError, ConnectionError):
                continue
            finally:
                await asyncio.sleep(POLL_SECONDS)
            if answer.status != 503:
                return answer
        raise AssertionError(f"nobody answers {path}")

    async def _follow(self, turn_id: str) -> None:
        deadline = monotonic() + FOLLOW_SECONDS
        while not self._has_seen_the_end(turn_id):
            assert monotonic() < deadline, f"{turn_id} never ended: {self.client.types}"
            await self.client.try_watch(self.chance.choice(self.scene.ports))
            await asyncio.sleep(POLL_SECONDS)

    def _has_seen_the_end(self, turn_id: str) -> bool:
        return self.client.finished and turn_id in self.client.screen[-1].data


def _script(chance: random.Random) -> str:
    steps: list[Step] = []
    for number in range(chance.randint(2, 4)):
        steps.append({"say": "word", "words": chance.randint(5, 40), "word_ms": 20})
        steps.append(
            chance.choice(
                [
                    {"tool": "append_note", "args": {"text": str(number)}},
                    {"sleep_tool": 0.5, "safety": "idempotent"},
                    {"sleep_tool": 0.5, "safety": "unsafe"},
                    {"parallel": [{"tool": "append_note", "args": {"text": "p"}}] * 2},
                ]
            )
        )
    return json.dumps(steps)


async def _pass(seconds: float) -> None:
    """Let a storm's time pass: here time itself is the fault."""
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)


async def killed(scene: Scene, node: Node) -> None:
    node.edge.kill()
    assert node.wire is not None
    node.edge = scene.start_edge(node.wire.port, **store_settings(node))
    node.port = await node.edge.port()


async def told_to_stop(scene: Scene, node: Node) -> None:
    node.edge.signal(signal.SIGTERM)
    assert await node.edge.exit_code() == 0
    await killed(scene, node)


async def paused(scene: Scene, node: Node) -> None:
    node.edge.signal(signal.SIGSTOP)
    await _pass(LONG_PAUSE_SECONDS)
    node.edge.signal(signal.SIGCONT)


async def cut_from_its_runtime(scene: Scene, node: Node) -> None:
    assert node.wire is not None
    node.wire.cut()


async def cut_from_its_store(scene: Scene, node: Node) -> None:
    with scene.store_out_of_reach(node):
        await _pass(BLOW_PAUSE_SECONDS)


async def deaf_to_its_runtime(scene: Scene, node: Node) -> None:
    assert node.wire is not None
    node.wire.stall("up")
    await _pass(BLOW_PAUSE_SECONDS)
    node.wire.flow()


def store_settings(node: Node) -> dict[str, str]:
    if node.store_wire is None:
        return {}
    return {"FIRESTORE_EMULATOR_HOST": f"127.0.0.1:{node.store_wire.port}"}


Blow = Callable[[Scene, Node], Awaitable[None]]
ALL_BLOWS: tuple[Blow, ...] = (
    killed,
    told_to_stop,
    paused,
    cut_from_its_runtime,
    cut_from_its_store,
    deaf_to_its_runtime,
)


async def storm(scene: Scene, chance: random.Random, over: asyncio.Event) -> None:
    """Strike one edge after the other; at least one of them is well at any time."""
    for blow in chance.sample(ALL_BLOWS, BLOWS):
        await _pass(chance.random() * BLOW_PAUSE_SECONDS)
        await blow(scene, chance.choice(scene.nodes))
    over.set()


@pytest.mark.proves("S05", "S41", "P-HTTP-5", "P-HTTP-11", "P-SSE-6", "P-EVT-1", "P-EVT-4")
@pytest.mark.parametrize("seed", [12, 21])
async def test_a_storm_breaks_no_promise(scene: Scene, seed: int) -> None:
    chance = random.Random(seed)
    await scene.set(2, shape=scene.shape, wired=True)
    users = [
        User(scene, random.Random(chance.random()), Client(await scene.session()))
        for _ in range(USERS)
    ]
    over = asyncio.Event()
    await asyncio.gather(storm(scene, chance, over), *(user.work(over) for user in users))
    for user in users:
        await scene.judge(user.client, posts=user.posts, cancels=user.cancels)
