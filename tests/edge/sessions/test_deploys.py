"""A deploy of many full edges at once: those who watched come back spread, and find a place in the queue."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from edge.core.control import Control, Reconnect
from edge.sessions.registry import Registry
from edge.sessions.settings import SessionSettings
from edge.sessions.tail import Shown
from edge.sessions.viewer import Viewer
from edge.web.server import BACKLOG
from tests.support.house import UID, edge, memory_journal
from tests.support.runtime_double import RuntimeDouble, crash
from tests.support.virtual_loop import elapse, run_virtual

EDGES = 13
STREAMS_EACH = SessionSettings().max_streams
TICK_MS = 100


async def no_turn(_attempt: object) -> None:
    raise crash()


async def full_edge(seed: int) -> tuple[Registry, list[Viewer]]:
    """Return an edge with as many streams as it takes."""
    registry = edge(memory_journal(), RuntimeDouble(no_turn), seed=seed)
    viewers: list[Viewer] = []
    while len(viewers) < STREAMS_EACH:
        session_id = await registry.create_session(UID)
        for _ in range(min(32, STREAMS_EACH - len(viewers))):
            viewer = await registry.attach(UID, session_id, None, "follow")
            assert viewer is not None
            viewers.append(viewer)
    return registry, viewers


async def told_last(viewer: Viewer) -> Shown | Control:
    """Read a stream to its end."""
    last: Shown | Control | None = None
    while (items := await viewer.next()) is not None:
        last = items[-1] if items else last
    assert last is not None
    return last


@pytest.mark.proves("P-SSE-15")
def test_nothing_is_said_behind_the_word_that_a_stream_is_over() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(no_turn))
        session_id = await registry.create_session(UID)
        viewer = await registry.attach(UID, session_id, None, "follow")
        assert viewer is not None
        await registry.drain(5.0)  # before the stream's first word
        items = await viewer.next()
        assert items is not None
        assert [type(item) for item in items] == [Reconnect]
        assert await viewer.next() is None
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("T46")
def test_ten_thousand_streams_come_back_spread_and_fit_into_one_edges_queue() -> None:
    async def waits_ms(seed: int) -> list[int]:
        registry, viewers = await full_edge(seed)
        reading = asyncio.gather(*map(told_last, viewers))
        await elapse(1.0)
        await registry.drain(5.0)
        ends = await reading
        await registry.close()
        assert all(isinstance(end, Reconnect) and end.reason == "rolling" for end in ends)
        return [end.retry_ms for end in ends if isinstance(end, Reconnect)]

    waits = [wait for seed in range(EDGES) for wait in run_virtual(waits_ms(seed))]
    assert len(waits) > 10_000
    ticks = Counter(wait // TICK_MS for wait in waits)
    # Spread evenly they would be a fifteenth each. All at one edge, they would wait for it and not be refused.
    assert max(ticks.values()) < len(waits) / 12
    assert max(ticks.values()) < BACKLOG
