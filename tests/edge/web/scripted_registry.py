"""A registry that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from edge.core.control import Control
from edge.core.cursor import START, Cursor
from edge.core.event import Event
from edge.core.recap import Recap
from edge.core.requests import TurnRequest, TurnStarted
from edge.sessions.tail import Shown
from edge.wire.native import event_frame

SESSION = "s" * 24


def shown(seq: int, kind: str = "token", data: str = "{}") -> Shown:
    event = Event(epoch=1, seq=seq, type=kind, data=data)
    return Shown(event, event_frame(event))


@dataclass
class ScriptedViewer:
    """Shows its batches, then fails or ends; ``endless`` repeats the last batch for ever."""

    batches: list[Sequence[Shown | Control]] = field(default_factory=list)
    failure: BaseException | None = None
    endless: bool = False
    hangs: bool = False
    start: Cursor = START
    on_stall: Any = None
    lags: bool = True
    taken: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def next(self) -> Sequence[Shown | Control] | None:
        if self.endless or self.taken < len(self.batches):
            batch = self.batches[min(self.taken, len(self.batches) - 1)]
            self.taken += 1
            return batch
        if self.hangs:
            await asyncio.Event().wait()
        if self.failure is not None:
            raise self.failure
        return None

    def close(self) -> None:
        self.closed.set()


@dataclass
class ScriptedRegistry:
    """Every call notes its arguments; ``failure`` is raised by all of them."""

    failure: BaseException | None = None
    viewer: ScriptedViewer | None = None
    draining: bool = False
    cancelled: str = "accepted"
    replayed: bool = False
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if self.failure is not None:
            raise self.failure

    async def create_session(self, uid: str) -> str:
        self._note("create_session", uid)
        return SESSION

    async def snapshot(self, uid: str, session_id: str) -> dict[str, object]:
        self._note("snapshot", uid, session_id)
        return {"session_id": session_id, "cursor": "1-2"}

    async def start_turn(self, uid: str, session_id: str, request: TurnRequest) -> TurnStarted:
        self._note("start_turn", uid, session_id, request)
        return TurnStarted("t1", Cursor(1, 4), self.replayed)

    async def cancel(self, uid: str, session_id: str, turn_id: str) -> str:
        self._note("cancel", uid, session_id, turn_id)
        return self.cancelled

    async def recap(self, uid: str, session_id: str, turn_id: str = "") -> Recap:
        """Return one turn that runs."""
        self._note("recap", uid, session_id, turn_id)
        start = Event(1, 1, "turn_start", '{"turn_id":"t1","attempt":1}', "t1")
        return Recap("t1", START, (start,), finished=False, waiting=())

    async def resolve(self, *call: str) -> None:
        self._note("resolve", *call)

    async def attach(self, *call: Any) -> ScriptedViewer | None:
        self._note("attach", *call)
        return self.viewer

    async def check(self) -> None:
        self._note("check")
