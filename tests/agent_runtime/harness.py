"""A real runtime server on loopback, and an edge reduced to what the contract asks of one.

The edge here keeps the history as the real one does: its own form of TurnStarted, every structural
event, and no attempt number with any other event. Every wait is bounded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration
from unbroken.v1 import agent_runtime_pb2 as pb
from unbroken.v1 import agent_runtime_pb2_grpc as rpc

from agent_runtime.agent import Agent
from agent_runtime.service import AgentRuntimeService, Limits

T = TypeVar("T")
WAIT_SECONDS = 10.0
WALL_TIME = 1_800_000_000.25

HOLD = pb.CHECKPOINT_MODE_HOLD
SUSPEND = pb.CHECKPOINT_MODE_SUSPEND
NONE = pb.CHECKPOINT_MODE_NONE


async def soon(waited_for: Awaitable[T]) -> T:
    """Wait, but not for ever."""
    async with asyncio.timeout(WAIT_SECONDS):
        return await waited_for


class RuntimeUnderTest:
    """A served runtime and a stub to call it with."""

    def __init__(
        self, service: AgentRuntimeService, stub: rpc.AgentRuntimeServiceAsyncStub
    ) -> None:
        self.service = service
        self.stub = stub
        self._turns = 0

    def turn(self, text: str = "hello", **options: Any) -> Turn:
        """Return a new turn, not started."""
        self._turns += 1
        return Turn(self.stub, f"t{self._turns}", text, **options)


@asynccontextmanager
async def serving(*agents: Agent, limits: Limits | None = None) -> AsyncIterator[RuntimeUnderTest]:
    """Serve the agents on a free loopback port."""
    service = AgentRuntimeService(
        {agent.name: agent for agent in agents},
        instance_id="instance",
        wall_clock=lambda: WALL_TIME,
        limits=limits or Limits(grace_seconds=1.0),
    )
    server = grpc.aio.server()
    rpc.add_AgentRuntimeServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield RuntimeUnderTest(service, rpc.AgentRuntimeServiceStub(channel))
    await service.drain(0.1)
    await server.stop(None)


class Turn:
    """One turn as its edge sees it, over any number of attempts."""

    def __init__(
        self,
        stub: rpc.AgentRuntimeServiceAsyncStub,
        turn_id: str,
        text: str,
        *,
        mode: pb.CheckpointMode.ValueType = HOLD,
        hold_seconds: float = 30.0,
        heartbeat_seconds: float = 30.0,
        max_model_calls: int = 0,
        agent: str = "",
        history: Iterable[pb.AgentEvent] = (),
    ) -> None:
        self.stub = stub
        self.ref = pb.TurnRef(session_id="s", turn_id=turn_id, attempt=0, user_id="u")
        self.agent = agent
        self.input = [pb.ContentPart(text=text)]
        self.options = pb.TurnOptions(
            checkpoint_mode=mode,
            hold_timeout=seconds(hold_seconds),
            heartbeat_interval=seconds(heartbeat_seconds),
            max_model_calls=max_model_calls,
        )
        self.earlier = list(history)
        self.history: list[pb.AgentEvent] = []
        self.packs: list[list[pb.AgentEvent]] = []
        """What the running attempt has sent, as it was packed."""
        self._call: Any = None

    @property
    def events(self) -> list[pb.AgentEvent]:
        return [event for pack in self.packs for event in pack]

    @property
    def kinds(self) -> list[str]:
        return [kind_of(event) for event in self.events]

    def start(self) -> Turn:
        """Call RunTurn."""
        self._journal_start(self.input)
        request = pb.RunTurnRequest(
            turn=self.ref,
            agent=self.agent,
            input=self.input,
            history=self.earlier,
            options=self.options,
        )
        self._call = self.stub.RunTurn(request)
        return self

    def resume(
        self, *resolutions: pb.ToolCallResolution, answer: str = "", attempts_lost: int = 0
    ) -> Turn:
        """Call ResumeTurn with the history as it stands."""
        self.ref.attempt += attempts_lost
        parts = [pb.ContentPart(text=answer)] if answer else []
        self._journal_start(parts)
        request = pb.ResumeTurnRequest(
            turn=self.ref,
            agent=self.agent,
            history=[*self.earlier, *self.history],
            resolutions=resolutions,
            input=parts,
            options=self.options,
        )
        self._call = self.stub.ResumeTurn(request)
        return self

    async def until(self, kind: str, count: int = 1) -> pb.AgentEvent:
        """Read up to the ``count``-th event of a kind in this attempt, and return it."""
        while self.kinds.count(kind) < count:
            assert await self._read(), f"the stream ended before {kind}: {self.kinds}"
        return [event for event in self.events if kind_of(event) == kind][count - 1]

    async def rest(self) -> list[pb.AgentEvent]:
        """Read to the end of the stream, and return all that the attempt sent."""
        while await self._read():
            pass
        return self.events

    async def run(self) -> list[pb.AgentEvent]:
        """Read to the end, and acknowledge every checkpoint on the way."""
        while await self._read():
            for event in self.packs[-1]:
                if event.tool_call_started.checkpoint_required and self.holds:
                    await self.ack(event.index)
        return self.events

    @property
    def holds(self) -> bool:
        return self.options.checkpoint_mode != SUSPEND

    async def code(self) -> grpc.StatusCode:
        """Return how the call ended."""
        try:
            await self.rest()
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    async def ack(self, index: int, *, attempt: int = 0) -> list[str]:
        ref = pb.TurnRef()
        ref.CopyFrom(self.ref)
        ref.attempt = attempt or ref.attempt
        request = pb.AckCheckpointRequest(turn=ref, committed_index=index)
        return list((await soon(self.stub.AckCheckpoint(request))).released_tool_call_ids)

    async def cancel(self, grace_seconds: float = 0.5, *, attempt: int = 0) -> None:
        ref = pb.TurnRef()
        ref.CopyFrom(self.ref)
        ref.attempt = attempt or ref.attempt
        request = pb.CancelTurnRequest(turn=ref, reason="user", grace_period=seconds(grace_seconds))
        await soon(self.stub.CancelTurn(request))

    def leave(self) -> None:
        """Drop the stream, as an edge that died does."""
        self._call.cancel()

    def forget_after(self, kind: str, count: int = 1) -> None:
        """Lose what was not committed: keep the history up to the ``count``-th event of a kind."""
        places = [i for i, event in enumerate(self.history) if kind_of(event) == kind]
        del self.history[places[count - 1] + 1 :]

    def _journal_start(self, parts: list[pb.ContentPart]) -> None:
        self.ref.attempt += 1
        self.packs = []
        started = pb.TurnStarted(input=parts)
        self.history.append(pb.AgentEvent(attempt=self.ref.attempt, turn_started=started))

    async def _read(self) -> bool:
        response = await soon(self._call.read())
        if response is grpc.aio.EOF:
            return False
        assert response.events, "a response is never empty"
        self.packs.append(list(response.events))
        for event in response.events:
            structural = event.delivery_class == pb.DELIVERY_CLASS_STRUCTURAL
            if structural and kind_of(event) != "turn_started":
                kept = pb.AgentEvent()
                kept.CopyFrom(event)
                kept.attempt = kept.index = 0
                self.history.append(kept)
        return True


def kind_of(event: pb.AgentEvent) -> str:
    return event.WhichOneof("payload") or ""


def seconds(value: float) -> Duration:
    duration = Duration()
    duration.FromMicroseconds(round(value * 1e6))
    return duration


def execute(call_id: str) -> pb.ToolCallResolution:
    return pb.ToolCallResolution(tool_call_id=call_id, execute=True)


def decided(
    call_id: str,
    result: object = None,
    outcome: pb.ToolOutcome.ValueType = pb.TOOL_OUTCOME_SUCCEEDED,
) -> pb.ToolCallResolution:
    finished = pb.ToolCallFinished(outcome=outcome, result_json=json.dumps(result))
    return pb.ToolCallResolution(tool_call_id=call_id, finished=finished)


def texts(events: Iterable[pb.AgentEvent]) -> list[str]:
    """Return the text of every completed message."""
    return [
        "".join(part.text for part in event.message_completed.parts)
        for event in events
        if kind_of(event) == "message_completed"
    ]


def ends(events: Iterable[pb.AgentEvent]) -> dict[str, str]:
    """Return how each finished call ended."""
    return {
        event.tool_call_finished.tool_call_id: pb.ToolOutcome.Name(
            event.tool_call_finished.outcome
        ).removeprefix("TOOL_OUTCOME_")
        for event in events
        if kind_of(event) == "tool_call_finished"
    }


async def settle(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something is the case. Bounded."""

    async def turning() -> None:
        while not condition():
            await asyncio.sleep(0)

    await soon(turning())
