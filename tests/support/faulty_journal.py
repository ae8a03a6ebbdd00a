"""A journal that fails on demand: one edge's view of a store that others may still reach.

Knows nothing of which store it wraps, nor of what a fault does (``tests.support.faulty_calls``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from edge.core.errors import JournalUnavailable
from edge.core.log import AnyRecord
from edge.ports import AppendUnknown, Head, Journal, Page, Renewal, TurnEntry
from tests.support.faulty_calls import Fault, FaultyCalls, Plan

T = TypeVar("T")


class FaultyJournal(FaultyCalls):
    """Wraps a journal; without a plan it changes nothing."""

    def __init__(self, inner: Journal, plan: Plan | None = None) -> None:
        super().__init__(plan)
        self.inner = inner

    async def _through(self, method: str, call: Callable[[], Awaitable[T]]) -> T:
        failure = AppendUnknown() if method == "append" else JournalUnavailable()
        return await self.through(method, call, failure)

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


__all__ = ["Fault", "FaultyJournal"]
