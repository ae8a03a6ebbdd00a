"""An edge in this process, over real sockets: Hypercorn, the real registry, a scripted runtime.

Knows nothing of processes and environments; ``tests/edge/test_main.py`` starts those.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from edge.core.control import Reconnect
from edge.journal.memory import MemoryJournal
from edge.main import AG_UI, AI_SDK, NATIVE
from edge.ports import Authenticator, Clock, Journal, Principal
from edge.sessions.registry import Registry
from edge.sessions.settings import SessionSettings
from edge.telemetry import Metrics
from edge.upstream.client import GrpcRuntime
from edge.upstream.requests import RuntimeOptions
from edge.web.app import build_app
from edge.web.auth import OpenLocalAuthenticator
from edge.web.parts import Parts
from edge.web.server import listen, serve_http
from edge.wire import native
from tests.support.http_client import PATIENCE_SECONDS, Answer, Exchange, exchange, post
from tests.support.scripted_runtime import ScriptedRuntime

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


class FixedClock:
    """A wall clock that stands still."""

    def now_ms(self) -> int:
        return 1_800_000_000_000


class NamedUsers:
    """Takes the ``Authorization`` header for the user's name."""

    open_to_all = False

    async def authenticate(self, authorization: Sequence[str]) -> Principal:
        return Principal(uid="/".join(authorization) or "nobody")


def parts_for(registry: object, authenticator: Authenticator | None = None) -> Parts:
    """Return the parts of an application over a registry, real or not."""
    counted = Metrics()
    return Parts(
        registry=cast(Registry, registry),
        authenticator=authenticator or OpenLocalAuthenticator(),
        telemetry=counted,
        framing=NATIVE,
        ai_sdk=AI_SDK,
        ag_ui=AG_UI,
        reconnect=lambda reason: Reconnect(reason, 1_500),
        metrics=counted.render,
        allowed_hosts=LOOPBACK,
    )


@asynccontextmanager
async def served(
    registry: object, *, stall_seconds: float = 30.0, authenticator: Authenticator | None = None
) -> AsyncIterator[int]:
    """Serve an application over a registry; the value is the port."""
    listener = listen("127.0.0.1", 0, stall_seconds)
    port = listener.getsockname()[1]
    stop = asyncio.Event()

    async def stopped() -> None:
        await stop.wait()

    app = build_app(parts_for(registry, authenticator))
    serving = asyncio.create_task(serve_http(app, listener, stopped))
    try:
        yield port
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await serving


@dataclass(slots=True)
class LiveEdge:
    """A running edge and what it was built from."""

    port: int
    registry: Registry
    runtime: ScriptedRuntime
    journal: Journal
    keys: int = field(default=0)

    async def session(self) -> str:
        answer = await post(self.port, "/v1/sessions", {})
        assert answer.status == 201, answer
        return str(answer.json["session_id"])

    async def turn(self, session_id: str, text: str = "Hi", key: str = "") -> Answer:
        self.keys += 1
        header = ("Idempotency-Key", key or f"key-{self.keys:016d}")
        return await post(self.port, f"/v1/sessions/{session_id}/turns", {"input": text}, header)

    @asynccontextmanager
    async def events(
        self, session_id: str, cursor: str = "0-0", query: str = ""
    ) -> AsyncIterator[Exchange]:
        target = f"/v1/sessions/{session_id}/events{query}"
        lines = [("Accept", "text/event-stream"), ("Last-Event-ID", cursor)]
        async with exchange(self.port, "GET", target, lines) as opened:
            yield opened


@asynccontextmanager
async def live_edge(
    runtime: ScriptedRuntime,
    *,
    journal: Journal | None = None,
    authenticator: Authenticator | None = None,
    clock: Clock | None = None,
    **settings: Any,
) -> AsyncIterator[LiveEdge]:
    """Serve an edge over the scripted runtime; ``settings`` are those of ``SessionSettings``."""
    kept = journal or MemoryJournal(FixedClock())
    async with runtime.serve() as target:
        registry = Registry(
            journal=kept,
            runtime=GrpcRuntime(target, RuntimeOptions(), Metrics()),
            clock=clock or FixedClock(),
            telemetry=Metrics(),
            settings=SessionSettings(**settings),
            encode=native.event_frame,
            chance=random.Random(7),
            writer=str(uuid.uuid4()),
        )
        try:
            stall_seconds = settings.get("stall_seconds", 30)
            serving = served(registry, stall_seconds=stall_seconds, authenticator=authenticator)
            async with serving as port:
                yield LiveEdge(port, registry, runtime, kept)
                await registry.drain(PATIENCE_SECONDS)
        finally:
            await registry.close()
