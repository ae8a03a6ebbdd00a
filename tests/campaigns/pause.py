"""Stops edges in their tracks for longer than their lease, and lets them go on, while users are at work.

Two edges sleep at once, over and over; one is always awake. An edge that wakes after it was taken over must
neither write nor keep its viewers: a socket of its that stays open in silence fails its user, and a record of its
behind a foreign ``acquire`` breaks the log. Knows nothing of processes that die.
"""

from __future__ import annotations

import asyncio
import random
import signal
from dataclasses import dataclass, field
from time import monotonic

from tests.campaigns.crowd import Crowd
from tests.campaigns.plan import Plan
from tests.campaigns.tally import Tally
from tests.faults.scene import QUICK, Node, Scene
from tests.faults.users import pass_time

EDGES = 3
SLEEPERS = EDGES - 1
USERS = 8
TABS = 1
"""Beside a user's own: whoever looks on from another edge has the sleeper's turn taken over."""
BEYOND_TTL_SECONDS = (1.0, 3.0)
AWAKE_SECONDS = (0.5, 3.0)
"""Until an edge may be stopped again: it gets turns of its own meanwhile."""
NOTICED_SHARE = 0.5
"""How often a balancer sends nobody to an edge that sleeps. Otherwise requests wait in its backlog, and are
carried out when it wakes."""


async def pause(plan: Plan) -> list[Tally]:
    """Pause ``plan.cycles`` edges, and judge every session that was open meanwhile."""
    row = Tally("processes", f"an edge paused beyond its lease ({plan.name})")
    async with plan.scene() as scene:
        await scene.set(EDGES, shape="shared", wired=False, **plan.settings())
        crowd = Crowd(scene, plan.chance(), row, plan.tell, tabs=TABS)
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(crowd.work(USERS, over))
            nights = _Nights(scene, crowd, plan.cycles, plan.chance(), awake=[*scene.nodes])
            await asyncio.gather(*(nights.run() for _ in range(SLEEPERS)))
            over.set()
    return [row]


@dataclass(slots=True)
class _Nights:
    """What edges sleep through."""

    scene: Scene
    crowd: Crowd
    left: int
    chance: random.Random
    awake: list[Node] = field(default_factory=list)

    async def run(self) -> None:
        """Send one edge after the other to sleep, until it is enough."""
        while self.left > 0:
            self.left -= 1
            await pass_time(self.chance.uniform(*AWAKE_SECONDS))
            node = self.chance.choice(self.awake)
            self.awake.remove(node)
            await self._pause(node)
            self.awake.append(node)

    async def _pause(self, node: Node) -> None:
        noticed = self.chance.random() < NOTICED_SHARE
        if noticed:
            self.scene.nodes.remove(node)
        node.edge.signal(signal.SIGSTOP)
        self.crowd.struck_at[node.edge.writer()] = monotonic()
        await pass_time(float(QUICK["EDGE_TTL_SECONDS"]) + self.chance.uniform(*BEYOND_TTL_SECONDS))
        node.edge.signal(signal.SIGCONT)
        if noticed:
            self.scene.nodes.append(node)
        self.crowd.tally.count += 1
