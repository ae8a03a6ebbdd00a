"""AgentRuntimeService: attempts as gRPC streams.

Knows nothing of what an agent does. Before the first event a refusal is a status code; after it
everything is an event, and only an attempt that was superseded or abandoned ends otherwise than OK.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
from google.protobuf.message import Message
from unbroken.v1 import agent_runtime_pb2 as pb
from unbroken.v1 import agent_runtime_pb2_grpc as rpc

from agent_runtime.agent import Agent
from agent_runtime.attempt import Attempt, TurnOptions
from agent_runtime.errors import UnusableHistory
from agent_runtime.events import CheckpointMode, Event, TurnRef
from agent_runtime.fence import Fence, TurnKey, Verdict
from agent_runtime.ledger import Ledger, open_ledger, reopen_ledger
from agent_runtime.wire import (
    decode_history,
    decode_parts,
    decode_resolutions,
    decode_turn,
    encode_event,
    seconds_or,
)

STOP_SECONDS = 0.5
"""How long abandoned agents and tools may take to notice when the process ends."""

ADAPTER = "unbroken-agent-runtime/0.1.0"
_MODES = {
    pb.CHECKPOINT_MODE_UNSPECIFIED: CheckpointMode.HOLD,
    pb.CHECKPOINT_MODE_HOLD: CheckpointMode.HOLD,
    pb.CHECKPOINT_MODE_SUSPEND: CheckpointMode.SUSPEND,
    pb.CHECKPOINT_MODE_NONE: CheckpointMode.NONE,
}
# A mode from the future is not one that may open the gate.
_DEFAULT_MODE = CheckpointMode.HOLD

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Defaults for what a request leaves open, and how much may run at once."""

    hold_seconds: float = 10.0
    heartbeat_seconds: float = 10.0
    grace_seconds: float = 5.0
    max_model_calls: int = 50
    max_attempts: int = 1000


class AgentRuntimeService(rpc.AgentRuntimeServiceServicer):
    """Serves the agents of this process. At most one attempt of a turn runs here at a time."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        *,
        instance_id: str,
        wall_clock: Callable[[], float],
        limits: Limits | None = None,
    ) -> None:
        """The first of ``agents`` is the default; ``wall_clock`` gives Unix seconds."""
        self._agents = agents
        self._instance_id = instance_id
        self._wall_clock = wall_clock
        self._limits = limits or Limits()
        self._fence = Fence()
        self._attempts: dict[TurnKey, Attempt] = {}
        """The attempt of each turn that owns its stream here."""
        self._alive: set[Attempt] = set()
        """Every attempt that has not ended, abandoned ones included."""
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def GetRuntimeInfo(  # noqa: N802
        self, request: pb.GetRuntimeInfoRequest, context: Context
    ) -> pb.GetRuntimeInfoResponse:
        """Describe this runtime."""
        return pb.GetRuntimeInfoResponse(
            adapter=ADAPTER,
            agents=list(self._agents),
            checkpoint_modes=[mode for mode in _MODES if mode != pb.CHECKPOINT_MODE_UNSPECIFIED],
            resume_supported=True,
            instance_id=self._instance_id,
        )

    # The two streams are coroutines that write, not generators: when the caller goes away gRPC
    # cancels the coroutine, so that its `finally` runs at once, but merely drops a generator.

    async def RunTurn(  # type: ignore[override]  # noqa: N802
        self, request: pb.RunTurnRequest, context: Context
    ) -> None:
        """Run the first attempt of a turn."""
        ledger = open_ledger(decode_history(request.history), decode_parts(request.input))
        attempt = await self._begin(request, ledger, context)
        await self._stream(attempt, context, lambda events: pb.RunTurnResponse(events=events))

    async def ResumeTurn(  # type: ignore[override]  # noqa: N802
        self, request: pb.ResumeTurnRequest, context: Context
    ) -> None:
        """Run a further attempt of a turn from its journal."""
        try:
            ledger = reopen_ledger(
                decode_history(request.history),
                attempt=request.turn.attempt,
                resolutions=decode_resolutions(request.resolutions),
                answer=decode_parts(request.input),
            )
        except UnusableHistory as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        attempt = await self._begin(request, ledger, context)
        await self._stream(attempt, context, lambda events: pb.ResumeTurnResponse(events=events))

    async def AckCheckpoint(  # noqa: N802
        self, request: pb.AckCheckpointRequest, context: Context
    ) -> pb.AckCheckpointResponse:
        """Release the calls whose events are durable."""
        attempt = await self._held(request.turn, context)
        released = attempt.acknowledge(request.committed_index)
        return pb.AckCheckpointResponse(released_tool_call_ids=released)

    async def CancelTurn(  # noqa: N802
        self, request: pb.CancelTurnRequest, context: Context
    ) -> pb.CancelTurnResponse:
        """Stop an attempt gracefully; its stream still tells how everything ended."""
        attempt = await self._held(request.turn, context)
        grace = request.grace_period if request.HasField("grace_period") else None
        attempt.cancel(request.reason, None if grace is None else max(0.0, seconds_or(grace, 0.0)))
        return pb.CancelTurnResponse()

    async def drain(self, deadline_seconds: float) -> None:
        """Refuse new turns, suspend the running ones between tool bodies, abandon what is left.

        Returns when all have ended, or a moment after the deadline. An agent or a tool that ignores
        its cancellation may still run then; only the end of the process stops it.
        """
        self._draining = True
        for attempt in list(self._attempts.values()):
            attempt.drain()
        await self._idle_within(deadline_seconds)
        for attempt in list(self._alive):
            attempt.abandon()
        await self._idle_within(STOP_SECONDS)

    async def _idle_within(self, timeout_seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._idle.wait()

    async def _begin(
        self, request: pb.RunTurnRequest | pb.ResumeTurnRequest, ledger: Ledger, context: Context
    ) -> Attempt:
        """Admit and start an attempt. Aborts the call where it must not run."""
        turn = decode_turn(request.turn)
        agent = self._agents.get(request.agent or next(iter(self._agents)))
        if agent is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no agent of this name")
        await self._check_admission(turn, context)
        key = (turn.session_id, turn.turn_id)
        older = self._attempts.pop(key, None)
        if older is not None:
            older.abandon()
        attempt = Attempt(
            turn,
            agent,
            ledger,
            self._options(request.options),
            instance_id=self._instance_id,
            wall_clock=self._wall_clock,
        )
        self._attempts[key] = attempt
        self._alive.add(attempt)
        self._idle.clear()
        attempt.start(lambda: self._ended(attempt))
        return attempt

    async def _check_admission(self, turn: TurnRef, context: Context) -> None:
        if not (turn.session_id and turn.turn_id and turn.attempt >= 1):
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                "turn needs a session_id, a turn_id and an attempt from 1",
            )
        if self._draining:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "draining")
        key = (turn.session_id, turn.turn_id)
        running = self._attempts.get(key)
        if running is None and len(self._attempts) >= self._limits.max_attempts:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many turns run here")
        verdict = self._fence.admit(
            key,
            turn.attempt,
            running=running.turn.attempt if running is not None else 0,
            now=asyncio.get_running_loop().time(),
        )
        if verdict is Verdict.RUNNING_HERE:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, "the attempt runs here")
        if verdict is Verdict.STALE:
            await context.abort(grpc.StatusCode.ABORTED, "an attempt at least as high was seen")

    async def _stream(
        self, attempt: Attempt, context: Context, response: Callable[[list[pb.AgentEvent]], Message]
    ) -> None:
        """Write the attempt's events as they come, packed, with a sign of life in silence."""
        try:
            while pack := await self._next_pack(attempt):
                await context.write(response([encode_event(event) for event in pack]))
            if not attempt.complete:
                # ABORTED tells a stale edge that it lost the turn; a shutdown must not say so.
                code = grpc.StatusCode.UNAVAILABLE if self._draining else grpc.StatusCode.ABORTED
                await context.abort(code, "the attempt was given up")
        finally:
            # Also when the reader left: nobody could commit what the attempt did any more.
            if not attempt.complete:
                attempt.abandon()
            self._release(attempt)

    async def _next_pack(self, attempt: Attempt) -> list[Event]:
        try:
            async with asyncio.timeout(attempt.options.heartbeat_seconds):
                return await attempt.outbox.next_pack()
        except TimeoutError:
            return [attempt.heartbeat(attempt.running_call_ids)]

    async def _held(self, turn: pb.TurnRef, context: Context) -> Attempt:
        attempt = self._attempts.get((turn.session_id, turn.turn_id))
        if attempt is None or attempt.turn.attempt != turn.attempt:
            await self._abort_not_held(context)
        return attempt

    async def _abort_not_held(self, context: Context) -> NoReturn:
        await context.abort(grpc.StatusCode.NOT_FOUND, "this instance does not hold the attempt")

    def _options(self, options: pb.TurnOptions) -> TurnOptions:
        limits = self._limits
        return TurnOptions(
            mode=_MODES.get(options.checkpoint_mode, _DEFAULT_MODE),
            hold_seconds=seconds_or(options.hold_timeout, limits.hold_seconds),
            heartbeat_seconds=seconds_or(options.heartbeat_interval, limits.heartbeat_seconds),
            max_model_calls=options.max_model_calls or limits.max_model_calls,
            grace_seconds=limits.grace_seconds,
        )

    def _release(self, attempt: Attempt) -> None:
        """Let go of an attempt whose stream has ended."""
        key = (attempt.turn.session_id, attempt.turn.turn_id)
        if self._attempts.get(key) is attempt:
            del self._attempts[key]

    def _ended(self, attempt: Attempt) -> None:
        self._alive.discard(attempt)
        if not self._alive:
            self._idle.set()
