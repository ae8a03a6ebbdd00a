"""What a session's tasks remember of the request that made them: nothing."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar

from edge.core.requests import Until
from tests.support.house import UID, edge, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

UNTIL: Until = "turn_end"


class Request:
    """Stands for what a web framework keeps in a context variable."""


async def long_tool(attempt: Attempt) -> None:
    await attempt.tool("c1", 300.0)


def test_a_running_turn_and_a_viewer_do_not_keep_the_requests_that_they_came_from() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(long_tool))
        session_id = await registry.create_session(UID)
        current: ContextVar[Request] = ContextVar("current")
        kept = []

        async def start() -> None:
            current.set(begun := Request())
            kept.append(weakref.ref(begun))
            await registry.start_turn(UID, session_id, request())

        async def look() -> None:
            current.set(begun := Request())
            kept.append(weakref.ref(begun))
            await registry.attach(UID, session_id, None, UNTIL)

        await asyncio.create_task(start())
        await asyncio.create_task(look())
        await elapse(5.0)
        gc.collect()
        assert [reference() for reference in kept] == [None, None]
        await registry.close()

    run_virtual(main())
