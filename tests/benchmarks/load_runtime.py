"""A runtime that only streams: ``LOAD_RATE`` tokens a second into every turn, until it is left.

Deliberately absent: agents, tools, an end of the turn. The real runtime runs Python code for every
token and packs what is ready together; here each token is a message of its own at its own moment,
which is the dearest thing an edge can be sent and does not change while it is measured.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import uvloop
from google.protobuf.timestamp_pb2 import Timestamp
from unbroken.v1 import agent_runtime_pb2 as pb
from unbroken.v1 import agent_runtime_pb2_grpc as pb_grpc

TEXT = "thirty-two characters of answer "
_GOLDEN = 0.6180339887
"""Multiples of it, modulo 1, spread any number of turns evenly over one period."""


class LoadRuntime(pb_grpc.AgentRuntimeServiceServicer):
    """Every turn gets its tokens at its own phase of one common beat."""

    def __init__(self, rate: float) -> None:
        self._period = 1.0 / rate
        self._turns = 0

    async def GetRuntimeInfo(self, request: pb.GetRuntimeInfoRequest, context: Any) -> Any:  # noqa: N802
        return pb.GetRuntimeInfoResponse(
            agents=["load"],
            checkpoint_modes=[pb.CHECKPOINT_MODE_HOLD],
            resume_supported=True,
            instance_id="load",
        )

    async def RunTurn(  # noqa: N802
        self, request: pb.RunTurnRequest, context: Any
    ) -> AsyncIterator[pb.RunTurnResponse]:
        self._turns += 1
        turn_id = request.turn.turn_id
        started = pb.AgentEvent(index=1, attempt=1, turn_started=pb.TurnStarted(instance_id="load"))
        yield pb.RunTurnResponse(events=[started])
        beat = asyncio.get_running_loop().time() + self._turns * _GOLDEN % 1.0 * self._period
        index = 1
        while True:
            await _moment(beat)
            # A beat that was missed stays missed: nothing is made up for later.
            beat = max(beat + self._period, asyncio.get_running_loop().time())
            index += 1
            yield pb.RunTurnResponse(events=[token(turn_id, index)])

    def ResumeTurn(self, request: pb.ResumeTurnRequest, context: Any) -> Any:  # noqa: N802
        raise NotImplementedError  # told to the edge as a failed attempt; a turn here is run once

    async def AckCheckpoint(self, request: pb.AckCheckpointRequest, context: Any) -> Any:  # noqa: N802
        return pb.AckCheckpointResponse()

    async def CancelTurn(self, request: pb.CancelTurnRequest, context: Any) -> Any:  # noqa: N802
        return pb.CancelTurnResponse()


def token(turn_id: str, index: int) -> pb.AgentEvent:
    """Return a token as a runtime sends it, every field of the envelope filled in."""
    now = Timestamp()
    now.GetCurrentTime()
    return pb.AgentEvent(
        event_id=f"{turn_id}.1.{index}",
        index=index,
        attempt=1,
        emit_time=now,
        delivery_class=pb.DELIVERY_CLASS_COALESCABLE,
        text_delta=pb.TextDelta(message_id="m1", text=TEXT),
    )


async def _moment(when: float) -> None:
    due = asyncio.Event()
    timer = asyncio.get_running_loop().call_at(when, due.set)
    try:
        await due.wait()
    finally:
        timer.cancel()


async def _serve(rate: float) -> None:
    server = grpc.aio.server()
    pb_grpc.add_AgentRuntimeServiceServicer_to_server(LoadRuntime(rate), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"runtime listening on 127.0.0.1:{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(_serve(float(os.environ["LOAD_RATE"])))
