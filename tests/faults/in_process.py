"""An edge and a runtime as in production, but in this process, where their objects can be counted.

Knows nothing of what is done with them. Each forgets by itself what it need not know for ever: here
sooner than in production, as nobody wants to wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from unittest.mock import patch

import grpc
from unbroken.v1 import agent_runtime_pb2_grpc as rpc

from agent_runtime.demo.script import make_script
from agent_runtime.demo.settings import DemoSettings
from agent_runtime.demo.toolbox import make_toolbox
from agent_runtime.fence import Fence
from agent_runtime.service import AgentRuntimeService
from edge.config import Config
from edge.main import serve
from edge.sessions.settings import SessionSettings
from tests.faults.scene import QUICK, Store

IDLE_ROOM_SECONDS = 1.0
"""In production a session that nobody uses is forgotten after a minute."""
TURNS_REMEMBERED = 50
"""In production a runtime's fence remembers 10,000 turns."""


@asynccontextmanager
async def edge_here(store: Store, runtime_port: int) -> AsyncIterator[int]:
    """Serve an edge; the value is its port."""
    variables = {**QUICK, **store.variables(), "PORT": "0"}
    config = Config.from_environ({**variables, "EDGE_RUNTIME_TARGET": f"127.0.0.1:{runtime_port}"})
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    hasty = partial(SessionSettings, idle_room_seconds=IDLE_ROOM_SECONDS)
    with patch("edge.main.SessionSettings", hasty):
        serving = asyncio.create_task(serve(config, stop, url.set_result))
        try:
            yield int((await url).rpartition(":")[2])
        finally:
            stop.set()
            await serving


@asynccontextmanager
async def runtime_here() -> AsyncIterator[int]:
    """Serve the scripted agent; the value is the port."""
    settings = DemoSettings()
    script = make_script(settings, make_toolbox(settings))
    service = AgentRuntimeService({"script": script}, instance_id="here", wall_clock=lambda: 0.0)
    service._fence = Fence(capacity=TURNS_REMEMBERED)
    server = grpc.aio.server()
    rpc.add_AgentRuntimeServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await service.drain(0.1)
        await server.stop(None)
