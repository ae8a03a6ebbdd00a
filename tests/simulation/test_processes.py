"""What the simulation rests on: a process that is killed or stopped does nothing more, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from edge.core.requests import TurnStarted
from edge.sessions.registry import Registry
from tests.simulation.edges import Edge
from tests.simulation.loop import SimulatedLoop
from tests.simulation.run import LIMIT_SECONDS, clear_away
from tests.simulation.world import SESSION, World
from tests.support.house import UID, request

LANDED_SECONDS = 30.0
"""By then whatever was sent has arrived."""


@pytest.mark.parametrize("end", [Edge.kill, lambda edge: edge.pause(1e6)], ids=["kill", "pause"])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_of_an_edge_runs_on_when_it_is_killed_or_stopped(
    seed: int, end: Callable[[Edge], None]
) -> None:
    loop = SimulatedLoop(random.Random(seed), limit_seconds=LIMIT_SECONDS)

    async def main() -> None:
        world = World(seed, loop)
        world.weather.rough_seconds = 0.0
        await world.store.create_session(SESSION, UID)
        edge = world.edges[0]

        async def post(registry: Registry) -> TurnStarted:
            return await registry.start_turn(UID, SESSION, request())

        await edge.ask(post, patience=12.0)
        end(edge)
        await asyncio.sleep(LANDED_SECONDS)
        log = world.store.log()
        counts = world.weather.counts.copy()
        await asyncio.sleep(10 * LANDED_SECONDS)
        assert world.store.log() == log
        assert world.weather.counts == counts

    try:
        loop.run_until_complete(main())
    finally:
        clear_away(loop)
