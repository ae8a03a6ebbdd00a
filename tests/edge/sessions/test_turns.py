"""A whole turn through the sessions shell: order, replay, tools."""

from __future__ import annotations

import asyncio

import pytest

from edge.core.control import CaughtUp
from edge.core.cursor import START, Cursor
from tests.support.house import UID, Client, edge, log_events, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual


async def two_tools(attempt: Attempt) -> None:
    """Say something, run two tools in turn, say something else."""
    await attempt.say("m1", ["Let ", "me ", "look."])
    await attempt.tool("c1", 2.0)
    await attempt.tool("c2", 2.0)
    await attempt.say("m2", ["All ", "done."])


WHOLE_TURN = [
    "turn_start",
    *["token"] * 3,
    "message",
    *["tool_start", "tool_end"] * 2,
    *["token"] * 2,
    "message",
    "done",
]


@pytest.mark.proves("S23", "S58")
def test_a_turn_with_two_tools_is_shown_in_order_and_each_tool_runs_once() -> None:
    async def main() -> None:
        runtime, journal = RuntimeDouble(two_tools), memory_journal()
        registry = edge(journal, runtime)
        session_id = await registry.create_session(UID)
        started = await registry.start_turn(UID, session_id, request())
        client = Client(started.cursor)
        assert await client.watch(registry, session_id)
        assert client.types == WHOLE_TURN
        assert runtime.ledger == ["c1", "c2"]
        assert client.view == await log_events(journal, session_id)
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("T31", "T32", "S07")
def test_replay_from_every_cursor_is_byte_for_byte_what_was_shown_live() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(two_tools))
        session_id = await registry.create_session(UID)
        started = await registry.start_turn(UID, session_id, request())
        live = Client(started.cursor)
        await live.watch(registry, session_id)
        cursors = [START, *(Cursor(e.epoch, e.seq) for e in live.view[:-1])]
        for position, cursor in enumerate(cursors):
            again = Client(cursor)
            assert await again.watch(registry, session_id)
            assert again.frames == live.frames[position:]
            assert again.told == [CaughtUp()]
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("T47", "S06")
def test_a_client_that_has_the_terminal_event_is_told_that_nothing_is_left() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(two_tools))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        client = Client()
        await client.watch(registry, session_id)
        assert client.finished
        assert not await client.watch(registry, session_id)
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("S04", "S17", "S21")
def test_a_client_that_drops_after_every_kth_event_ends_with_the_whole_view() -> None:
    async def main(every: int) -> None:
        runtime, journal = RuntimeDouble(two_tools), memory_journal()
        registry = edge(journal, runtime)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        client = Client()
        while not client.finished:
            await client.watch(registry, session_id, stop_after=every)
            await elapse(0.01)
        assert client.view == await log_events(journal, session_id)
        assert runtime.ledger == ["c1", "c2"]
        await registry.close()

    for every in range(1, len(WHOLE_TURN) + 1):
        run_virtual(main(every))


@pytest.mark.proves("S66", "T18")
def test_a_silent_tool_is_bridged_by_pings_at_most_ten_seconds_apart() -> None:
    async def silent(attempt: Attempt) -> None:
        await attempt.tool("c1", 25.0)

    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(silent))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        viewer = await registry.attach(UID, session_id, None, "turn_end")
        assert viewer is not None
        loop, heard_at, longest = asyncio.get_running_loop(), 0.0, 0.0
        while await viewer.next() is not None:
            longest = max(longest, loop.time() - heard_at)
            heard_at = loop.time()
        assert longest <= 10.0
        viewer.close()
        await registry.close()

    run_virtual(main())
