"""Users who leave by the thousand, over and over, on one edge and one runtime, and what that leaves behind.

The edge forgets a session that nobody uses after a minute, and that minute is waited for here: then
descriptors, threads, memory and open sessions must be what they were. Knows nothing of objects: those are
counted by ``tests/faults/test_leaks.py``.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import monotonic

from tests.campaigns.plan import Plan
from tests.campaigns.tally import Tally
from tests.faults.churn import cancel_turns, client_of, drop_streams, give_up_calls
from tests.faults.scene import Node
from tests.faults.users import pass_time
from tests.support.footprint import Outside, outside
from tests.support.history import Kind, Violation
from tests.support.http_client import ask

CALLS_PER_CYCLE = 10
"""Calls are given up ten times as often as streams and turns."""
FORGOTTEN_SECONDS = 120.0
LOOK_SECONDS = 1.0
BYTES_PER_CYCLE = 4_096
PARTS = 4
"""Memory goes up and down by what is held at once, so only what two later looks have in common beyond two
earlier ones counts as left behind."""
Work = Callable[[int], Awaitable[None]]


async def leaks(plan: Plan) -> list[Tally]:
    """Drop twice ``plan.cycles`` streams, cancel as many turns, and give up ten times as many calls."""
    chance = plan.chance()
    async with plan.scene() as scene:
        await scene.set(1, shape="own", wired=False, **plan.settings())
        (node,) = scene.nodes
        client = client_of(node.runtime_port)
        works: Sequence[tuple[str, Work, int]] = (
            ("streams dropped", partial(drop_streams, node.port, chance), 1),
            ("turns cancelled", partial(cancel_turns, node.port, chance), 1),
            ("calls given up", partial(give_up_calls, client, chance), CALLS_PER_CYCLE),
        )
        rows = []
        for name, work, times in works:
            row = Tally("processes", f"{name} ({plan.name})")
            await _look_on(node, row, work, plan.cycles * times)
            plan.tell(f"{row.fault}: {row.count}")
            rows.append(row)
        await client.close()
    return rows


async def _look_on(node: Node, row: Tally, work: Work, cycles: int) -> None:
    processes, part = (node.edge, node.runtime), cycles // 2
    looks = []
    for _ in range(PARTS):
        await work(part)
        row.count += part
        if sessions := await _forgotten(node):
            row.accuse([Violation(Kind.OTHER, f"{sessions} sessions were not forgotten")])
        looks.append([outside(process.pid) for process in processes])
    for process, seen in zip(processes, zip(*looks, strict=True), strict=True):
        row.histories += 1
        row.accuse(_left(process.name, seen, part))


async def _forgotten(node: Node) -> int:
    """Wait until no session is open, and return how many are in the end."""
    deadline = monotonic() + FORGOTTEN_SECONDS
    while (sessions := await _open_sessions(node.port)) and monotonic() < deadline:
        await pass_time(LOOK_SECONDS)
    await pass_time(LOOK_SECONDS)  # the last look was a connection too
    return sessions


async def _open_sessions(port: int) -> int:
    answer = await ask(port, "GET", "/metrics")
    found = re.search(rb"^unbroken_sessions_open (\d+)$", answer.body, re.MULTILINE)
    assert found is not None, answer
    return int(found[1])


def _left(name: str, looks: Sequence[Outside], cycles: int) -> list[Violation]:
    """Return what a process holds more than before; between two looks lie so many cycles."""
    allowed = {"descriptors": 0, "threads": 0, "resident_bytes": cycles * BYTES_PER_CYCLE}
    earlier, later = looks[: PARTS // 2], looks[PARTS // 2 :]
    grown = {
        what: min(getattr(look, what) for look in later)
        - max(getattr(look, what) for look in earlier)
        for what in allowed
    }
    return [
        Violation(Kind.OTHER, f"{name} holds {count:,} more {what}")
        for what, count in grown.items()
        if count > allowed[what]
    ]
