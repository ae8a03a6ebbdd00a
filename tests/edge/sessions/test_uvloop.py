"""The driver on uvloop, whose timer handles are not asyncio's."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.house import UID, edge, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble

uvloop = pytest.importorskip("uvloop")


async def long_tool(attempt: Attempt) -> None:
    await asyncio.Event().wait()


def test_a_wake_up_that_is_due_at_once_can_be_set_twice() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(long_tool))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        driver = registry._rooms[session_id].driver
        assert driver is not None
        loop = asyncio.get_running_loop()
        driver.writer.wake_at = loop.time  # type: ignore[method-assign]
        driver._set_timer()
        driver._set_timer()
        await registry.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(main(), 30.0))
