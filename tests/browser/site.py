"""An edge in this process behind a wire that can be cut, as a page sees it, and what pages asked of it.

Knows nothing of browsers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sized
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from edge.core.cursor import Cursor
from edge.core.requests import TurnRequest, TurnStarted, Until
from edge.sessions.viewer import Viewer
from tests.support.live_edge import LiveEdge, live_edge
from tests.support.scripted_runtime import ScriptedRuntime, Step, wait_for
from tests.support.tcp_proxy import TcpProxy, tcp_proxy

PATIENCE_SECONDS = 60.0


@dataclass
class Site:
    """An edge behind a wire."""

    edge: LiveEdge
    wire: TcpProxy
    runtime: ScriptedRuntime
    asked: list[Cursor | None] = field(default_factory=list)
    """The cursor of each stream that was opened."""
    keys: list[str] = field(default_factory=list)
    """The key of each request for a turn."""
    given: list[Cursor] = field(default_factory=list)
    """The cursor of each snapshot."""
    cuts: int = 0
    """At how many requests for a turn the wire is cut."""
    always_from: Cursor | None = None
    """Where every stream begins, whatever was asked for."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, session_id: str = "") -> str:
        return f"http://127.0.0.1:{self.wire.port}/#{session_id}"

    def listen_in(self) -> None:
        """Write down what the edge is asked for."""
        registry = self.edge.registry
        attach, start_turn, snapshot = registry.attach, registry.start_turn, registry.snapshot

        async def attached(
            uid: str, session_id: str, cursor: Cursor | None, until: Until
        ) -> Viewer | None:
            self.asked.append(cursor)
            self._news.set()
            return await attach(uid, session_id, self.always_from or cursor, until)

        async def started(uid: str, session_id: str, request: TurnRequest) -> TurnStarted:
            self.keys.append(request.idempotency_key)
            self._news.set()
            if len(self.keys) <= self.cuts:
                self.wire.cut()
            return await start_turn(uid, session_id, request)

        async def drawn(uid: str, session_id: str) -> dict[str, Any]:
            made = await snapshot(uid, session_id)
            self.given.append(Cursor.parse(made["cursor"]))
            return made

        registry.attach = attached  # type: ignore[method-assign]
        registry.start_turn = started  # type: ignore[method-assign]
        registry.snapshot = drawn  # type: ignore[method-assign]

    async def opened(self, streams: int) -> None:
        """Wait until so many streams were asked for."""
        await self._grown(self.asked, streams)

    async def posted(self, requests: int) -> None:
        """Wait until so many requests for turns have come."""
        await self._grown(self.keys, requests)

    async def _grown(self, record: Sized, size: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(record) < size:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def open_site(**settings: Any) -> AsyncIterator[Site]:
    """Serve the page; ``settings`` are those of ``SessionSettings``."""
    runtime = ScriptedRuntime()
    async with live_edge(runtime, **settings) as edge, tcp_proxy(edge.port) as wire:
        site = Site(edge, wire, runtime)
        site.listen_in()
        yield site


class Cue:
    """Lets a test say when an agent goes on."""

    def __init__(self) -> None:
        self._given = asyncio.Event()

    def give(self) -> None:
        self._given.set()

    def wait(self) -> Step:
        return wait_for(self._given)
