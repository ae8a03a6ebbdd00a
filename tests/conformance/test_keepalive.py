"""The edge's probes and the runtime's patience fit together: their own settings, thirty times as fast.

Real connections and real time; what is scaled is only how often either side probes, or bears it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from agent_runtime import TurnContext, agent
from agent_runtime import server as server_module
from agent_runtime.config import Config
from agent_runtime.server import Server
from edge.ports import AttemptCall, AttemptRef, RuntimeEnded
from edge.telemetry import Metrics
from edge.upstream import client as client_module
from edge.upstream.client import GrpcRuntime
from edge.upstream.requests import RuntimeOptions
from tests.support.tcp_proxy import TcpProxy, tcp_proxy

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(120)]

FASTER = 30
PROBE = "grpc.keepalive_time_ms"
CALL = AttemptCall(ref=AttemptRef("s1", "t1", 1, "u1"), agent="silent")
SILENCE_SECONDS = 6.0
"""Holds five probes of the edge: after the third one too many a server hangs up."""
PATIENCE_SECONDS = 30.0


def faster(options: Sequence[tuple[str, int]], names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    assert {name for name, _ in options} >= set(names)
    return tuple((n, value // FASTER if n in names else value) for n, value in options)


@asynccontextmanager
async def silent_call(
    monkeypatch: pytest.MonkeyPatch,
    go: asyncio.Event,
    *,
    probes: Sequence[str],
    bears: Sequence[str] = ("grpc.http2.min_ping_interval_without_data_ms",),
) -> AsyncIterator[tuple[asyncio.Task[list[str]], TcpProxy]]:
    """Read a call whose agent says nothing until ``go``; the values are the reading and the wire.

    ``probes`` and ``bears`` name the options of either side that are scaled.
    """

    @agent()
    async def silent(ctx: TurnContext) -> None:
        await ctx.say("Hello")
        await go.wait()

    monkeypatch.setattr(server_module, "OPTIONS", faster(server_module.OPTIONS, bears))
    options = faster(client_module.CHANNEL_OPTIONS, probes)
    monkeypatch.setattr(client_module, "CHANNEL_OPTIONS", options)
    config = Config(listen="127.0.0.1:0")
    server = Server(config, {"silent": silent}, instance_id="i", wall_clock=lambda: 0.0)
    port = int((await server.start()).rpartition(":")[2])
    async with tcp_proxy(port) as wire:
        edge = GrpcRuntime(f"127.0.0.1:{wire.port}", RuntimeOptions(), Metrics())
        stream, types = edge.start(CALL), list[str]()

        async def read() -> list[str]:
            async for drafts in stream:
                types.extend(draft.type for draft in drafts)
            return types

        yield asyncio.create_task(read()), wire
        stream.cancel()
        await edge.close()
    await server.stop()


@pytest.mark.proves("T23")
async def test_the_edges_probes_of_an_idle_call_are_never_too_many_for_the_runtime(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go = asyncio.Event()
    async with silent_call(monkeypatch, go, probes=[PROBE]) as (reading, _):
        assert (await asyncio.wait({reading}, timeout=SILENCE_SECONDS))[1]
        go.set()
        assert (await asyncio.wait_for(reading, PATIENCE_SECONDS))[-1] == "done"


async def test_probes_that_are_too_many_would_have_ended_it_by_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go = asyncio.Event()
    async with silent_call(monkeypatch, go, probes=[PROBE], bears=()) as (reading, _):
        with pytest.raises(RuntimeEnded):
            await asyncio.wait_for(reading, PATIENCE_SECONDS)


@pytest.mark.proves("T24")
async def test_a_runtime_that_falls_silent_is_noticed_though_the_wire_still_acknowledges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    probes = (PROBE, "grpc.http2.ping_timeout_ms")
    async with silent_call(monkeypatch, asyncio.Event(), probes=probes) as (reading, wire):
        assert (await asyncio.wait({reading}, timeout=0.5))[1]
        wire.stall()
        with pytest.raises(RuntimeEnded, match="runtime_unavailable"):
            await asyncio.wait_for(reading, PATIENCE_SECONDS)
