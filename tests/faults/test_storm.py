"""Users at work while edges are killed, paused and cut off at random: every history is judged.

The seed of a failing storm is in the test's name; what happens when is up to the machine.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable

import pytest

from tests.faults.scene import Node, Scene
from tests.faults.users import User, pass_time
from tests.support.checker import violations

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(240)]

USERS = 6
BLOWS = 6
BLOW_PAUSE_SECONDS = 1.5
LONG_PAUSE_SECONDS = 6.0
"""Longer than the lease."""


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
    await pass_time(LONG_PAUSE_SECONDS)
    node.edge.signal(signal.SIGCONT)


async def cut_from_its_runtime(scene: Scene, node: Node) -> None:
    assert node.wire is not None
    node.wire.cut()


async def cut_from_its_store(scene: Scene, node: Node) -> None:
    with scene.store_out_of_reach(node):
        await pass_time(BLOW_PAUSE_SECONDS)


async def deaf_to_its_runtime(scene: Scene, node: Node) -> None:
    assert node.wire is not None
    node.wire.stall("up")
    await pass_time(BLOW_PAUSE_SECONDS)
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
        await pass_time(chance.random() * BLOW_PAUSE_SECONDS)
        await blow(scene, chance.choice(scene.nodes))
    over.set()


@pytest.mark.proves("S05", "S41", "P-HTTP-5", "P-HTTP-11", "P-SSE-6", "P-EVT-1", "P-EVT-4")
@pytest.mark.parametrize("seed", [12, 21])
async def test_a_storm_breaks_no_promise(scene: Scene, seed: int) -> None:
    chance = random.Random(seed)
    await scene.set(2, shape=scene.shape, wired=True)
    users = [await User.arrive(scene, chance) for _ in range(USERS)]
    over = asyncio.Event()
    await asyncio.gather(storm(scene, chance, over), *(user.work(over) for user in users))
    for user in users:
        assert violations(await user.history()) == []
