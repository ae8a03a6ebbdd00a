"""A browser behind a load balancer: it comes back when it was told to, to whichever edge answers.

Knows nothing of faults. Unlike ``tests.faults.client.Client``, which comes back at once, it takes its time as an
``EventSource`` does, so that what it measures is what a person would see.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

import h11

from tests.faults.client import Client, Moment, never
from tests.faults.users import pass_time
from tests.support.http_client import Exchange

UNTOLD_RETRY_MS = 3_000
"""What an ``EventSource`` waits before it was told anything else."""
Ports = Callable[[], Sequence[int]]
REAL_TIMINGS: Mapping[str, str] = {
    "EDGE_TTL_SECONDS": "15",
    "EDGE_HOLD_TIMEOUT_SECONDS": "10",
    "EDGE_DRAIN_SECONDS": "7",
    "EDGE_PING_SECONDS": "3",  # only this: the clients of tests give up after 10 s of silence
}
"""As deployed: what is measured here depends on them."""


class Browser(Client):
    """One tab. Not to be used by two tasks at once."""

    retry_ms = UNTOLD_RETRY_MS
    port = 0
    """The edge it is connected to; 0 between two connections."""
    ends = 0
    """How often a stream ended."""

    async def watch(self, port: int, leave: Moment = never, query: str = "") -> bool:
        """Connect once, as any client; note where, and that it ended."""
        self.port = port
        try:
            return await super().watch(port, leave, query)
        finally:
            self.port = 0
            self.ends += 1

    async def listen(self, stream: Exchange, leave: Moment = never) -> None:
        """Take in a stream, and remember when to come back."""
        try:
            await super().listen(stream, leave)
        finally:
            self.retry_ms = stream.parser.retry_ms or self.retry_ms

    async def follow_behind(
        self, balancer: Balancer, *, seconds: float, done: Moment | None = None
    ) -> bool:
        """Come back until the end of the turn is shown; return whether it was within the seconds."""
        over = done or (lambda client: client.finished)
        deadline = monotonic() + seconds
        while not over(self):
            if monotonic() > deadline:
                return False
            await self._connect(balancer)
            if not over(self):
                await pass_time(self.retry_ms / 1000)
        return True

    async def _connect(self, balancer: Balancer) -> None:
        for port in balancer.choices():
            try:
                # To its own end: to look at each event would cost the measurement.
                await self.watch(port)
            except ConnectionRefusedError:
                continue
            except (OSError, h11.RemoteProtocolError, TimeoutError):
                pass
            return


class Balancer:
    """Chooses an edge at random, and the next one at once if it refuses the connection.

    It does not ask who is ready: one that drains is chosen as long as it accepts.
    """

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        self._ports = ports
        self._chance = chance

    def choices(self) -> list[int]:
        """Return all edges in the order in which they are to be tried."""
        ports = list(self._ports())
        self._chance.shuffle(ports)
        return ports

    def choice(self) -> int:
        """Return the edge that comes first now."""
        return self._chance.choice(self._ports())
