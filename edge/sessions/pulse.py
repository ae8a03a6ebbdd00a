"""The pulse: one timer for every viewer's ping, deadline and stall, and for idle rooms.

Knows nothing of what a beat does. One timer for all costs 4 to 8 times less than one time-out per connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context

TICK_SECONDS = 1.0


class Pulse:
    """Calls ``beat`` once per ``TICK_SECONDS`` until stopped."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat = beat
        self._handle: asyncio.TimerHandle | None = None
        self._home = copy_context()

    def start(self) -> None:
        if self._handle is None:
            self._schedule()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        # Not in the context of the request that happened to be the first: it would be kept for ever.
        self._handle = loop.call_later(TICK_SECONDS, self._ring, context=self._home)

    def _ring(self) -> None:
        self._schedule()
        self._beat()
