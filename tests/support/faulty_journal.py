"""A journal that fails on demand: one edge's view of a store that others may still reach.

Knows nothing of which store it wraps. A fault is decided per call by ``plan(method, n)``, n counting the calls of
that method from 1, so a test can name the very await point it wants to fail.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import TypeVar

from edge.core.errors import JournalUnavailable
from edge.core.log import AnyRecord
from edge.ports import AppendUnknown, Head, Journal, Page, Renewal, TurnEntry

T = TypeVar("T")


class Fault(Enum):
    """What happens to one call."""

    LOST = "lost"
    """It never reaches the store."""
    UNANSWERED = "unanswered"
    """It is applied, and its answer is lost."""
    LATE = "late"
    """It is reported unknown now, and applied five seconds later."""
    HANG = "hang"
    """It never returns: the caller is as good as dead."""


Plan = Callable[[str, int], Fault | None]
LATE_SECONDS = 5.0


class FaultyJournal:
    """Wraps a journal; without a plan it changes nothing."""

    def __init__(self, inner: Journal, plan: Plan | None = None) -> None:
        self.inner = inner
        self.plan: Plan = plan or (lambda method, n: None)
        self.calls: Counter[str] = Counter()

    def cut(self) -> None:
        """From now on nothing reaches the store or comes back."""
        self.plan = lambda method, n: Fault.HANG

    def lose(self) -> None:
        """From now on every call fails before it reaches the store."""
        self.plan = lambda method, n: Fault.LOST

    def heal(self) -> None:
        self.plan = lambda method, n: None

    async def _through(self, method: str, call: Callable[[], Awaitable[T]]) -> T:
        self.calls[method] += 1
        fault = self.plan(method, self.calls[method])
        failure = AppendUnknown() if method == "append" else JournalUnavailable()
        if fault is Fault.HANG:
            await asyncio.get_running_loop().create_future()
        if fault is Fault.LOST:
            raise failure
        if fault is Fault.LATE:
            loop = asyncio.get_running_loop()
            loop.call_later(LATE_SECONDS, lambda: loop.create_task(_quietly(call())))
            raise failure
        result = await call()
        if fault is Fault.UNANSWERED:
            raise failure
        return result

    async def create_session(self, session_id: str, owner: str) -> None:
        await self._through("create_session", lambda: self.inner.create_session(session_id, owner))

    async def head(self, session_id: str) -> Head | None:
        return await self._through("head", lambda: self.inner.head(session_id))

    async def read(self, session_id: str, after_slot: int, limit: int) -> Page:
        return await self._through("read", lambda: self.inner.read(session_id, after_slot, limit))

    async def locate(self, session_id: str, seq: int) -> int | None:
        return await self._through("locate", lambda: self.inner.locate(session_id, seq))

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        await self._through("append", lambda: self.inner.append(session_id, records, turn))

    async def turn(self, session_id: str, turn_id: str) -> TurnEntry | None:
        return await self._through("turn", lambda: self.inner.turn(session_id, turn_id))

    async def renew(self, session_id: str, renewal: Renewal) -> None:
        await self._through("renew", lambda: self.inner.renew(session_id, renewal))

    async def watch(self, session_id: str) -> None:
        await self._through("watch", lambda: self.inner.watch(session_id))

    async def check(self) -> None:
        await self._through("check", self.inner.check)

    async def close(self) -> None:
        await self.inner.close()


async def _quietly(call: Awaitable[object]) -> None:
    with contextlib.suppress(Exception):  # nobody is left to hear what a late call met
        await call
