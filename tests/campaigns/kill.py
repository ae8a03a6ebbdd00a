"""Kills edges with -9 at random moments, one after the other, while users are at work.

Nobody waits for a take-over before the next kill, only for a second edge that is up: one is always
left to be asked. Now and then two die at once, or the runtime that they share.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from time import monotonic

from tests.campaigns.crowd import Crowd
from tests.campaigns.plan import Plan
from tests.campaigns.report import percentile
from tests.campaigns.tally import Tally
from tests.faults.scene import Node, Scene
from tests.faults.users import pass_time
from tests.support.processes import POLL_SECONDS, Child

EDGES = 3
USERS = 8
PAUSE_SECONDS = (0.2, 2.0)
START_SECONDS = 3.0
"""What a start takes on two cores that do nothing else, generously."""
PAIR_SHARE = 0.1
RUNTIME_SHARE = 0.1


async def kill(plan: Plan) -> list[Tally]:
    """Kill ``plan.cycles`` edges, and judge every session that was open meanwhile."""
    row = Tally("processes", f"kill -9 of an edge ({plan.name})")
    async with plan.scene() as scene:
        await scene.set(EDGES, shape="shared", wired=False, **plan.settings())
        crowd = Crowd(scene, plan.chance(), row, plan.tell)
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(crowd.work(USERS, over))
            async with asyncio.TaskGroup() as restarts:
                await _Killer(
                    plan=plan,
                    scene=scene,
                    crowd=crowd,
                    restarts=restarts,
                    chance=plan.chance(),
                    runtime=scene.nodes[0].runtime,
                ).run()
            over.set()
    if seconds := row.takeover_seconds:
        p50, p99 = percentile(seconds, 50), percentile(seconds, 99)
        figures = f"p50 {p50:.2f} s, p99 {p99:.2f} s, longest {max(seconds):.2f} s"
        plan.tell(f"{row.fault}: {len(seconds)} take-overs, {figures}")
    return [row]


@dataclass(slots=True, kw_only=True)
class _Killer:
    """Whoever kills, and starts again at once what was killed."""

    plan: Plan
    scene: Scene
    crowd: Crowd
    restarts: asyncio.TaskGroup
    chance: random.Random
    runtime: Child | None
    """The one that all edges share, while it is up."""
    slowness: float = 1.0
    """How much longer the newest start took than usual. On a machine that is too busy to start edges as fast
    as they are killed, none would live long enough to take a turn over: nobody could go on, and nothing is
    proved by that."""

    async def run(self) -> None:
        """Kill until it is enough."""
        while (left := self.plan.cycles - self.crowd.tally.count) > 0:
            await pass_time(self.chance.uniform(*PAUSE_SECONDS) * self.slowness)
            while len(self.scene.nodes) < 2:
                await asyncio.sleep(POLL_SECONDS)
            if self.runtime is not None and self.chance.random() < RUNTIME_SHARE:
                self._kill_runtime()
            for node in self._victims(left):
                self._kill(node)

    def _victims(self, left: int) -> list[Node]:
        two = self.chance.random() < PAIR_SHARE
        return self.chance.sample(self.scene.nodes, min(1 + two, left, len(self.scene.nodes) - 1))

    def _kill(self, node: Node) -> None:
        writer = node.edge.writer()
        self.scene.nodes.remove(node)
        self.crowd.struck_at[writer] = monotonic()
        node.edge.kill()
        self.crowd.tally.count += 1
        self.restarts.create_task(self._start_again(node))

    async def _start_again(self, node: Node) -> None:
        began = monotonic()
        node.edge = self.scene.start_edge(node.runtime_port, **self.plan.settings())
        node.port = await node.edge.port()
        self.slowness = max(1.0, (monotonic() - began) / START_SECONDS)
        self.scene.nodes.append(node)

    def _kill_runtime(self) -> None:
        assert self.runtime is not None
        self.runtime.kill()
        self.runtime = None
        self.restarts.create_task(self._start_runtime_again())

    async def _start_runtime_again(self) -> None:
        """Start it where the edges look for it."""
        runtime = self.scene.start_runtime(self.scene.nodes[0].runtime_port)
        await runtime.port()
        self.runtime = runtime
