"""Users who leave by the thousand, over and over, on one edge and one runtime, and what that leaves behind.

The edge forgets a session that nobody uses after a minute, and that minute is waited for here: then
descriptors, threads and open sessions must be what they were. Knows nothing of objects: those are
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
"""Of the last part: those before fill the allocator's pages with as much as is ever held at once."""
WARM_UPS = 2
Work = Callable[[int], Awaitable[None]]


async def leaks(plan: Plan) -> list[Tally]:
    """Drop ``plan.cycles`` streams, cancel as many turns, give up ten times as many calls; and half as much before."""
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
    half = cycles // 2
    for _ in range(WARM_UPS):
        await work(half)
        await _forgotten(node)
    before = [outside(process.pid) for process in (node.edge, node.runtime)]
    await work(half)
    row.count += (WARM_UPS + 1) * half
    sessions = await _forgotten(node)
    if sessions:
        row.accuse([Violation(Kind.OTHER, f"{sessions} sessions were not forgotten")])
    for process, then in zip((node.edge, node.runtime), before, strict=True):
        row.histories += 1
        row.accuse(_left(process.name, then, outside(process.pid), half))


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


def _left(name: str, before: Outside, after: Outside, cycles: int) -> list[Violation]:
    """Return what a process holds more than before."""
    grown = {
        "descriptors": after.descriptors - before.descriptors,
        "threads": after.threads - before.threads,
        "bytes": after.resident_bytes - before.resident_bytes,
    }
    allowed = {"descriptors": 0, "threads": 0, "bytes": cycles * BYTES_PER_CYCLE}
    return [
        Violation(Kind.OTHER, f"{name} holds {count} more {what}")
        for what, count in grown.items()
        if count > allowed[what]
    ]
