"""A runtime without an agent: the gRPC service, on loopback, playing a list of steps per attempt.

For tests of whatever stands in front of a runtime. It records every request, acknowledgement and
cancellation, and how each attempt's stream was left. Knows nothing of the edge.

    runtime = ScriptedRuntime()
    runtime.play(emit(text("m1", "Hello")), emit(completed("m1", "Hello"), finished()))
    async with runtime.serve() as target: ...

Each ``play`` scripts one more attempt; the last one is repeated for all that follow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.message import Message
from unbroken.v1 import agent_runtime_pb2 as pb
from unbroken.v1 import agent_runtime_pb2_grpc as pb_grpc

PATIENCE_SECONDS = 10.0
"""Bound on every wait of a script, so that a broken test ends."""

Context = grpc.aio.ServicerContext[Any, Any]
_PAYLOADS = {
    type(getattr(pb.AgentEvent(), field.name)): field.name
    for field in pb.AgentEvent.DESCRIPTOR.oneofs_by_name["payload"].fields
}
_CLASSES: dict[type[Message], pb.DeliveryClass.ValueType] = {
    pb.TextDelta: pb.DELIVERY_CLASS_COALESCABLE,
    pb.ReasoningDelta: pb.DELIVERY_CLASS_COALESCABLE,
    pb.ToolCallProgress: pb.DELIVERY_CLASS_COALESCABLE,
    pb.Heartbeat: pb.DELIVERY_CLASS_EPHEMERAL,
}


def wrap(payload: Message, **envelope: Any) -> pb.AgentEvent:
    """Return an event of ``payload`` with exactly the given envelope."""
    event = pb.AgentEvent(**envelope)
    getattr(event, _PAYLOADS[type(payload)]).CopyFrom(payload)
    return event


class ScriptedAttempt:
    """One stream that is being played."""

    def __init__(self, turn: pb.TurnRef, context: Context, response: type[Message]) -> None:
        self.turn = turn
        self.index = 0
        self.acked = 0
        self.cancelled = asyncio.Event()
        self.context = context
        self.changed = asyncio.Event()
        self._response = response

    def envelope(self, payload: Message) -> pb.AgentEvent:
        """Return the next event of the attempt, as a correct runtime would send it."""
        self.index += not isinstance(payload, pb.Heartbeat)
        return wrap(
            payload,
            event_id=f"{self.turn.turn_id}-{self.turn.attempt}-{self.index}",
            index=self.index,
            attempt=self.turn.attempt,
            delivery_class=_CLASSES.get(type(payload), pb.DELIVERY_CLASS_STRUCTURAL),
        )

    async def write(self, events: Sequence[pb.AgentEvent]) -> None:
        """Send one message."""
        await self.context.write(self._response(events=events))


Step = Callable[[ScriptedAttempt], Awaitable[None]]


class ScriptedRuntime(pb_grpc.AgentRuntimeServiceServicer):
    """The service. Lists grow in the order of what happened.

    The streams are coroutines that write, which grpc.aio takes as well as generators.
    """

    def __init__(self) -> None:
        self.requests: list[pb.RunTurnRequest | pb.ResumeTurnRequest] = []
        self.acks: list[pb.AckCheckpointRequest] = []
        self.cancels: list[pb.CancelTurnRequest] = []
        self.left: list[str] = []
        """How each attempt's stream ended: ``finished``, ``aborted`` or ``cancelled``."""
        self.unary_failures: list[grpc.StatusCode] = []
        """Statuses that the next unary calls are answered with."""
        self.info = pb.GetRuntimeInfoResponse(
            adapter="scripted/1",
            agents=["script"],
            checkpoint_modes=[pb.CHECKPOINT_MODE_HOLD, pb.CHECKPOINT_MODE_SUSPEND],
            resume_supported=True,
            instance_id="scripted",
        )
        self._scripts: list[Sequence[Step]] = []
        self._open: dict[tuple[str, str, int], ScriptedAttempt] = {}
        self._news = asyncio.Condition()

    def play(self, *steps: Step) -> None:
        """Script one more attempt."""
        self._scripts.append(steps)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Serve on a free loopback port; the value is the target to connect to."""
        server = grpc.aio.server()
        pb_grpc.add_AgentRuntimeServiceServicer_to_server(self, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            await server.stop(grace=None)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something recorded here makes ``holds`` true. Raises ``TimeoutError``."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._news:
            await self._news.wait_for(holds)

    async def GetRuntimeInfo(  # noqa: N802
        self, request: pb.GetRuntimeInfoRequest, context: Context
    ) -> pb.GetRuntimeInfoResponse:
        await self._fail_if_told(context)
        return self.info

    async def RunTurn(  # type: ignore[override]  # noqa: N802
        self, request: pb.RunTurnRequest, context: Context
    ) -> None:
        await self._play(request, ScriptedAttempt(request.turn, context, pb.RunTurnResponse))

    async def ResumeTurn(  # type: ignore[override]  # noqa: N802
        self, request: pb.ResumeTurnRequest, context: Context
    ) -> None:
        await self._play(request, ScriptedAttempt(request.turn, context, pb.ResumeTurnResponse))

    async def AckCheckpoint(  # noqa: N802
        self, request: pb.AckCheckpointRequest, context: Context
    ) -> pb.AckCheckpointResponse:
        await self._note(self.acks, request)
        await self._fail_if_told(context)
        attempt = await self._find(request.turn, context)
        attempt.acked = max(attempt.acked, request.committed_index)
        attempt.changed.set()
        return pb.AckCheckpointResponse()

    async def CancelTurn(  # noqa: N802
        self, request: pb.CancelTurnRequest, context: Context
    ) -> pb.CancelTurnResponse:
        await self._note(self.cancels, request)
        await self._fail_if_told(context)
        (await self._find(request.turn, context)).cancelled.set()
        return pb.CancelTurnResponse()

    async def _play(
        self, request: pb.RunTurnRequest | pb.ResumeTurnRequest, attempt: ScriptedAttempt
    ) -> None:
        script = self._scripts[min(len(self.requests), len(self._scripts) - 1)]
        await self._note(self.requests, request)
        key = _key(request.turn)
        self._open[key] = attempt
        ended = "aborted"
        try:
            for step in script:
                await step(attempt)
            ended = "finished"
        except asyncio.CancelledError:
            ended = "cancelled"
            raise
        finally:
            if self._open.get(key) is attempt:  # else the same attempt was asked for twice
                del self._open[key]
            await self._note(self.left, ended)

    async def _note(self, record: list[Any], entry: object) -> None:
        record.append(entry)
        async with self._news:
            self._news.notify_all()

    async def _find(self, turn: pb.TurnRef, context: Context) -> ScriptedAttempt:
        if _key(turn) not in self._open:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such attempt here")
        return self._open[_key(turn)]

    async def _fail_if_told(self, context: Context) -> None:
        if self.unary_failures:
            await context.abort(self.unary_failures.pop(0), "as the script says")


def _key(turn: pb.TurnRef) -> tuple[str, str, int]:
    return turn.session_id, turn.turn_id, turn.attempt


def emit(*payloads: Message) -> Step:
    """Send payloads in one message, with the envelopes of a correct runtime."""

    async def step(attempt: ScriptedAttempt) -> None:
        await attempt.write([attempt.envelope(payload) for payload in payloads])

    return step


def send(*events: pb.AgentEvent) -> Step:
    """Send events in one message exactly as they are."""

    async def step(attempt: ScriptedAttempt) -> None:
        await attempt.write(events)

    return step


def wait_for_ack() -> Step:
    """Go on once every event so far is acknowledged."""

    async def step(attempt: ScriptedAttempt) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while attempt.acked < attempt.index:
                attempt.changed.clear()
                await attempt.changed.wait()

    return step


def wait_for_cancel() -> Step:
    """Go on once ``CancelTurn`` was called."""

    async def step(attempt: ScriptedAttempt) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await attempt.cancelled.wait()

    return step


def wait_for(cue: asyncio.Event) -> Step:
    """Go on when the test says so, which may have to start a browser or node first."""

    async def step(_: ScriptedAttempt) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS * 6):
            await cue.wait()

    return step


def hang() -> Step:
    """Say nothing until the stream is left."""

    async def step(_: ScriptedAttempt) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.Event().wait()

    return step


def abort(code: grpc.StatusCode, details: str = "as the script says") -> Step:
    """End the stream with a status."""

    async def step(attempt: ScriptedAttempt) -> None:
        await attempt.context.abort(code, details)

    return step


def text(message_id: str, words: str) -> pb.TextDelta:
    """Text that is appended to a message."""
    return pb.TextDelta(message_id=message_id, text=words)


def completed(message_id: str, words: str) -> pb.MessageCompleted:
    """The whole message."""
    return pb.MessageCompleted(
        message_id=message_id,
        role=pb.MESSAGE_ROLE_AGENT,
        parts=[pb.ContentPart(text=words)],
        status=pb.MESSAGE_STATUS_COMPLETE,
    )


def tool_started(
    call_id: str, arguments_json: str = "{}", *, gated: bool = True
) -> pb.ToolCallStarted:
    """An unsafe tool that waits at its gate."""
    return pb.ToolCallStarted(
        tool_call_id=call_id,
        tool_name="act",
        arguments_json=arguments_json,
        replay_safety=pb.REPLAY_SAFETY_UNSAFE,
        executor=pb.TOOL_EXECUTOR_RUNTIME,
        checkpoint_required=gated,
    )


def tool_finished(call_id: str, result_json: str = "{}") -> pb.ToolCallFinished:
    """A tool that succeeded."""
    return pb.ToolCallFinished(
        tool_call_id=call_id, outcome=pb.TOOL_OUTCOME_SUCCEEDED, result_json=result_json
    )


def suspended(reason: pb.SuspendReason.ValueType, *call_ids: str) -> pb.TurnSuspended:
    """The end of an attempt whose turn goes on."""
    return pb.TurnSuspended(reason=reason, pending_tool_call_ids=call_ids)


def finished() -> pb.TurnFinished:
    """The end of a turn that went well."""
    return pb.TurnFinished(outcome=pb.TURN_OUTCOME_COMPLETED)
