"""A runtime that vanishes under an idle stream is noticed by the channel's own pings, and by nothing else.

The channel is the product's but for its two times, which are cut from half a minute to half a second; what
they add up to is held by ``test_client_calls.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from unbroken.v1 import agent_runtime_pb2_grpc as pb_grpc

from edge.ports import RuntimeEnded
from edge.upstream import client as upstream_client
from edge.upstream.client import CHANNEL_OPTIONS, GrpcRuntime
from edge.upstream.requests import RuntimeOptions
from tests.edge.upstream.conftest import CALL, Counts
from tests.support.scripted_runtime import ScriptedRuntime, emit, hang, tool_started
from tests.support.tcp_proxy import tcp_proxy
from tests.support.toxics import Vanish

PING_MS = 300
IDLE_SECONDS = 2.0
"""Long enough for the pings that gRPC would stop at by default: two without any data."""
PATIENCE_SECONDS = 20.0
SILENCE_SECONDS = 10 * PATIENCE_SECONDS
"""After which an attempt counts as dead by itself."""

_SERVER_OPTIONS = (
    ("grpc.http2.min_ping_interval_without_data_ms", PING_MS // 10),
    ("grpc.http2.max_ping_strikes", 0),
)


@asynccontextmanager
async def tolerant(runtime: ScriptedRuntime) -> AsyncIterator[int]:
    """Serve a runtime that minds no pings; the value is its port."""
    server = grpc.aio.server(options=_SERVER_OPTIONS)
    pb_grpc.add_AgentRuntimeServiceServicer_to_server(runtime, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(grace=None)


@pytest.mark.realtime
@pytest.mark.proves("T24", "S59")
async def test_a_runtime_that_vanished_long_after_its_last_word_is_noticed(
    runtime: ScriptedRuntime, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = {"grpc.keepalive_time_ms": PING_MS, "grpc.keepalive_timeout_ms": PING_MS}
    options = tuple({**dict(CHANNEL_OPTIONS), **quick}.items())
    monkeypatch.setattr(upstream_client, "CHANNEL_OPTIONS", options)
    runtime.play(emit(tool_started("c1")), hang())
    async with tolerant(runtime) as port, tcp_proxy(port) as wire:
        target, settings = f"127.0.0.1:{wire.port}", RuntimeOptions(idle_seconds=SILENCE_SECONDS)
        client = GrpcRuntime(target, settings, counts)
        attempt = client.start(CALL)
        await anext(attempt)
        next_word = asyncio.ensure_future(anext(attempt))
        await asyncio.wait({next_word}, timeout=IDLE_SECONDS)
        assert not next_word.done()
        wire.strike(Vanish())
        with pytest.raises(RuntimeEnded, match="runtime_unavailable"):
            await asyncio.wait_for(next_word, PATIENCE_SECONDS)
        await client.close()
