"""The "before": the server-sent events guide of Quart's documentation over a gRPC stream.

One call per response, one ``yield`` per event, default options everywhere. Deliberately absent is
all that the edge adds: sessions, journal, lease, replay, pings, bounds.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc
import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart, Response, make_response
from unbroken.v1 import agent_runtime_pb2 as pb
from unbroken.v1 import agent_runtime_pb2_grpc as pb_grpc

from edge.web.server import listen, url_of


@dataclass
class ServerSentEvent:
    """One event, as the guide writes it."""

    data: str
    event: str
    id: int

    def encode(self) -> bytes:
        return f"data: {self.data}\nevent: {self.event}\nid: {self.id}\n\n".encode()


def build_app(target: str) -> Quart:
    """Return the guide's application, fed by the runtime at ``target``."""
    app = Quart("recipe")
    stubs: list[pb_grpc.AgentRuntimeServiceAsyncStub] = []

    @app.before_serving
    async def connect() -> None:
        stubs.append(pb_grpc.AgentRuntimeServiceStub(grpc.aio.insecure_channel(target)))

    @app.get("/turns/<turn_id>")
    async def turn(turn_id: str) -> Response:
        request = pb.RunTurnRequest(turn=pb.TurnRef(turn_id=turn_id, attempt=1))

        async def send_events() -> AsyncIterator[bytes]:
            async for response in stubs[0].RunTurn(request):
                for event in response.events:
                    yield _sse(turn_id, event).encode()

        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        response = await make_response(send_events(), headers)
        assert isinstance(response, Response)
        response.timeout = None
        return response

    return app


def _sse(turn_id: str, event: pb.AgentEvent) -> ServerSentEvent:
    delta = event.text_delta
    data = {"turn_id": turn_id, "message_id": delta.message_id, "text": delta.text}
    return ServerSentEvent(json.dumps(data), event="token", id=event.index)


async def _serve(target: str) -> None:
    listener = listen("127.0.0.1", 0, stall_seconds=30.0)
    config = Config()
    url = url_of(listener)
    config.bind = [f"fd://{listener.detach()}"]
    # The line that every edge says when it is ready; connections wait in the socket until then.
    sys.stdout.write(f"edge listening on {url}\n")
    sys.stdout.flush()
    await serve(build_app(target), config)


if __name__ == "__main__":
    run = uvloop.run if os.environ["RECIPE_LOOP"] == "uvloop" else asyncio.run
    run(_serve(os.environ["RECIPE_RUNTIME"]))
