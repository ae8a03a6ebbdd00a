"""What every session of one process shares: ports, settings, chance, and the home of its tasks.

Knows nothing of any single session.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

from edge.core.errors import EdgeError
from edge.core.event import Event
from edge.ports import Clock, Journal, Runtime, Telemetry
from edge.sessions.settings import SessionSettings

_log = logging.getLogger("edge.sessions")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Handed from the registry to every room."""

    journal: Journal
    runtime: Runtime
    clock: Clock
    telemetry: Telemetry
    settings: SessionSettings
    encode: Callable[[Event], bytes]
    chance: random.Random
    writer: str
    """UUID of this process, new at every start: what records say of who wrote them."""
    _home: Context = field(default_factory=copy_context)
    """What the process was in when it was put together: no request yet."""
    _tasks: dict[asyncio.Task[Any], None] = field(default_factory=dict)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run ``work`` as an application task: no request's end can cancel it."""
        # In the process's own context: a copy of the caller's would keep the request that a web
        # framework has put there, with its body and its connection, for as long as the turn runs.
        task = asyncio.get_running_loop().create_task(work, context=self._home.copy())
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def later(self, seconds: float, call: Callable[[], object]) -> asyncio.TimerHandle:
        """Call back after a while, in the process's own context, as ``spawn`` runs its tasks."""
        return asyncio.get_running_loop().call_later(seconds, call, context=self._home)

    async def complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` to its end even if the caller goes away, and return what it returns."""
        return await asyncio.shield(self.spawn(work))

    async def stop(self) -> None:
        """Cancel what still runs, and wait for it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        # An EdgeError is an answer to whoever waits; anything else is a defect of ours.
        if task.cancelled() or isinstance(task.exception(), EdgeError | None):
            return
        _log.error("a task failed", exc_info=task.exception())
        self.telemetry.count("tasks_failed")
