"""What a session remembers of the requests that it came from, in its tasks and timers: nothing."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Coroutine
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from edge.core.requests import Until
from edge.sessions.registry import Registry
from tests.support.house import UID, edge, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

UNTIL: Until = "turn_end"


class Request:
    """Stands for what a web framework keeps in a context variable."""


async def long_tool(attempt: Attempt) -> None:
    await attempt.tool("c1", 300.0)


class Door:
    """Lets requests in, one by one, and sees what is left of them."""

    def __init__(self) -> None:
        self._current: ContextVar[Request] = ContextVar("current")
        self._seen: list[weakref.ref[Request]] = []

    async def let_in(self, work: Coroutine[Any, Any, object]) -> None:
        async def serve() -> None:
            self._current.set(request := Request())
            self._seen.append(weakref.ref(request))
            await work

        await asyncio.create_task(serve())

    def kept(self) -> list[Request]:
        gc.collect()
        return [request for seen in self._seen if (request := seen()) is not None]


async def look(registry: Registry, session_id: str) -> None:
    """Open a stream, and leave it."""
    viewer = await registry.attach(UID, session_id, None, UNTIL)
    if viewer is not None:
        viewer.close()


def test_a_running_turn_and_its_viewers_keep_none_of_the_requests_that_they_came_from() -> None:
    async def main() -> None:
        registry, door = edge(memory_journal(), RuntimeDouble(long_tool)), Door()
        session_id = await registry.create_session(UID)
        await door.let_in(look(registry, session_id))
        await door.let_in(registry.start_turn(UID, session_id, request()))
        await door.let_in(registry.attach(UID, session_id, None, UNTIL))
        await door.let_in(look(registry, session_id))
        await elapse(5.0)
        assert door.kept() == []
        await registry.close()

    run_virtual(main())


def test_a_turn_that_nobody_watches_any_more_keeps_no_request_of_those_who_left() -> None:
    async def main() -> None:
        registry, door = edge(memory_journal(), RuntimeDouble(long_tool)), Door()
        session_id = await registry.create_session(UID)
        asked = replace(request(), on_disconnect="cancel")
        await registry.start_turn(UID, session_id, asked)
        await door.let_in(look(registry, session_id))
        await elapse(5.0)
        assert door.kept() == []
        await registry.close()

    run_virtual(main())
