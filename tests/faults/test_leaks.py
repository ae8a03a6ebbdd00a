"""Streams dropped, turns cancelled and calls given up by the thousand leave nothing behind.

Each workload runs a little to warm up, and then in number. From inside, tasks, descriptors and the
objects of the product and its libraries must be back exactly where they were; anything else that
Python allocates, back within fewer blocks than there were cycles. From outside the allocator's own
pages show, and how many of those lie idle is up to how much went on at once at the worst moment:
descriptors must be back exactly, threads but for a few, and memory within what an attempt or a stream takes.
What cancelled turns leave outside is measured by ``python -m tests.campaigns leaks`` alone: it takes minutes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic

import pytest

from tests.faults.churn import cancel_turns, client_of, drop_streams, give_up_calls
from tests.faults.in_process import edge_here, runtime_here
from tests.faults.scene import Scene
from tests.support.footprint import Inside, Outside, inside, outside
from tests.support.processes import POLL_SECONDS, Child

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(240)]

CYCLES = 1_000
CALLS = 10_000
WARM_UP = 100
BLOCKS_PER_CYCLE = 0.1
SPARE_BLOCKS = 750
"""What fills up to a limit, with any work: SQLite keeps up to 200 references to cursors for each
connection, Python and gRPC a few hundred small objects for later use."""
SPARE_THREADS = 4
"""gRPC's pool gets another one when all of it are busy, and keeps it."""
BYTES_PER_CALL = 8_192
BYTES_PER_USER = 32_768
"""A session stays in memory for a minute."""
SETTLE_SECONDS = 60.0
PASSING = ("edge.sessions.room.Room", "edge.web.server.PromptConnection", "asyncio.tasks.Task")
Work = Callable[[int], Awaitable[None]]


async def leaves_nothing_inside(work: Work, cycles: int) -> None:
    """Assert that this process holds nothing more after the work than before it."""
    empty = inside()
    await work(WARM_UP)
    before = await _when(lambda now: not _passing(now, empty))
    await work(cycles)
    after = await _when(lambda now: not now.grown_since(before))
    assert after.grown_since(before) == {}
    assert after.blocks - before.blocks < SPARE_BLOCKS + cycles * BLOCKS_PER_CYCLE


def _passing(now: Inside, empty: Inside) -> bool:
    """Whether there is still something of the work, rather than what a first use leaves for good."""
    return any(now.objects[name] > empty.objects[name] for name in PASSING)


async def _when(at_rest: Callable[[Inside], bool]) -> Inside:
    """Return what this process holds once it is at rest, or patience has run out."""
    deadline = monotonic() + SETTLE_SECONDS
    while not at_rest(now := inside()) and monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
    return now


async def leaves_nothing_outside(work: Work, cycles: int, *processes: Child, each: int) -> None:
    """Assert that other processes hold nothing more after the work than before it."""
    await work(WARM_UP)
    before = [outside(process.pid) for process in processes]
    await work(cycles)
    for process, then in zip(processes, before, strict=True):
        now = await _let_go(process.pid, then)
        assert now.descriptors <= then.descriptors, process.name
        assert now.threads <= then.threads + SPARE_THREADS, process.name
        assert now.resident_bytes - then.resident_bytes < cycles * each, process.name


async def _let_go(pid: int, before: Outside) -> Outside:
    deadline = monotonic() + SETTLE_SECONDS
    while (now := outside(pid)).descriptors > before.descriptors and monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
    return now


async def test_dropped_streams_leave_nothing_inside_an_edge(sqlite_scene: Scene) -> None:
    runtime_port = await sqlite_scene.start_runtime().port()
    async with edge_here(sqlite_scene.store, runtime_port) as port:
        chance = random.Random(1)
        await leaves_nothing_inside(partial(drop_streams, port, chance), CYCLES)


async def test_cancelled_turns_leave_nothing_inside_an_edge(sqlite_scene: Scene) -> None:
    runtime_port = await sqlite_scene.start_runtime().port()
    async with edge_here(sqlite_scene.store, runtime_port) as port:
        chance = random.Random(2)
        await leaves_nothing_inside(partial(cancel_turns, port, chance), CYCLES)


async def test_dropped_streams_leave_nothing_in_an_edge_and_its_runtime(
    sqlite_scene: Scene,
) -> None:
    await sqlite_scene.set(1)
    (node,) = sqlite_scene.nodes
    work = partial(drop_streams, node.port, random.Random(3))
    await leaves_nothing_outside(work, CYCLES, node.edge, node.runtime, each=BYTES_PER_USER)


@pytest.mark.proves("S85", "T20")
async def test_calls_that_were_given_up_leave_nothing_in_a_runtime(sqlite_scene: Scene) -> None:
    runtime = sqlite_scene.start_runtime()
    client = client_of(await runtime.port())
    work = partial(give_up_calls, client, random.Random(4))
    await leaves_nothing_outside(work, CALLS, runtime, each=BYTES_PER_CALL)
    await client.close()


@pytest.mark.proves("S85", "T20")
async def test_calls_that_were_given_up_leave_nothing_inside_either_end() -> None:
    async with runtime_here() as port:
        client = client_of(port)
        work = partial(give_up_calls, client, random.Random(5))
        await leaves_nothing_inside(work, CALLS)
        await client.close()
