"""The gate before a tool body: it opens once the call's ToolCallStarted is known to be durable.

Knows nothing of tools, events or the wire. It fails closed: a call that was not released in time is
never released by this attempt, whatever arrives later, because the edge that speaks then may have
lost its lease. ``hold_seconds`` runs from emission on the loop's monotonic clock.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum, auto

from agent_runtime.events import CheckpointMode, Executor, Safety
from agent_runtime.tools import Tool


class Admission(Enum):
    """What a new call waits for before its body may run."""

    RUN = auto()
    AWAIT_ACK = auto()
    AWAIT_RESUME = auto()
    AWAIT_PERSON = auto()
    AWAIT_CLIENT = auto()


def decide_admission(mode: CheckpointMode, tool: Tool) -> Admission:
    """Say what a call that the journal does not know yet has to wait for."""
    if tool.executor is Executor.CLIENT:
        return Admission.AWAIT_CLIENT
    if tool.approval:
        return Admission.AWAIT_PERSON
    if mode is CheckpointMode.SUSPEND:
        return Admission.AWAIT_RESUME
    if mode is CheckpointMode.NONE and tool.safety is not Safety.UNSAFE:
        return Admission.RUN
    return Admission.AWAIT_ACK


@dataclass(frozen=True, slots=True)
class _Waiter:
    index: int
    released: asyncio.Future[bool]
    timer: asyncio.TimerHandle


class Gate:
    """Holds the calls of one attempt until the edge acknowledges their events."""

    def __init__(self, hold_seconds: float) -> None:
        self._hold_seconds = hold_seconds
        self._committed_index = 0
        self._closed = False
        self._waiting: dict[str, _Waiter] = {}

    async def passed(self, call_id: str, index: int) -> bool:
        """Wait for the event at ``index`` to be durable; ``False`` if the gate closed first.

        Call it in the same step as the emission: the hold time starts here.
        """
        if self._closed:
            return False
        if index <= self._committed_index:
            return True
        loop = asyncio.get_running_loop()
        released: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(self._hold_seconds, self.close)
        self._waiting[call_id] = _Waiter(index, released, timer)
        try:
            return await released
        finally:
            timer.cancel()
            self._waiting.pop(call_id, None)

    def acknowledge(self, committed_index: int) -> list[str]:
        """Release every waiting call up to an index, and return the ids of those. Idempotent."""
        self._committed_index = max(self._committed_index, committed_index)
        return [call_id for call_id, waiter in self._waiting.items() if self._release(waiter)]

    def close(self) -> None:
        """Release nothing any more: the waiting calls, and all later ones, are told so."""
        self._closed = True
        for waiter in self._waiting.values():
            if not waiter.released.done():
                waiter.released.set_result(False)

    def _release(self, waiter: _Waiter) -> bool:
        if waiter.released.done() or waiter.index > self._committed_index:
            return False
        waiter.released.set_result(True)
        return True
