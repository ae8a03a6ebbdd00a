"""The gRPC client: ``edge.ports.Runtime`` over one channel.

Deliberately absent: retries of a turn (the session starts the next attempt, which is durable
first), time limits on a whole turn, TLS, and a pool of channels.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import grpc
from unbroken.v1 import agent_runtime_pb2 as pb
from unbroken.v1 import agent_runtime_pb2_grpc as pb_grpc

from edge.core.errors import RuntimeUnavailable
from edge.ports import AttemptCall, AttemptRef, RuntimeInfo, Telemetry
from edge.upstream import requests
from edge.upstream.attempt import AttemptReader, Call, GrpcAttempt
from edge.upstream.requests import RuntimeOptions

MAX_MESSAGE_BYTES = 1024 * 1024
"""Largest message that is received. An event is at most 256 KiB and a runtime packs no more than
that beside it, so an honest message stays well below; a larger one is refused before its bytes
are gathered (gRPC's own default would let 4 MiB in for every stream)."""

CHANNEL_OPTIONS: Sequence[tuple[str, int]] = (
    # A peer that vanished without a word is noticed within 40 s, on idle streams too: by default
    # gRPC stops probing those after two pings. A server must allow one ping in 30 s.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # The time-out above is TCP's: where something between still acknowledges bytes, gRPC would wait
    # a minute for its ping's answer.
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.keepalive_permit_without_calls", 0),
    # Reading ahead must stay small, or a slow session makes its runtime fill this process: a
    # stalled reader measured 4.3 MB with the window probe, 97 KB without it and with 64 KiB.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 65_536),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A service config must not replay a turn behind the edge's back.
    ("grpc.enable_retries", 0),
    # Connections are this channel's own, not shared with every channel to the same target.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)

_TELL_SECONDS = 2.0
"""Deadline of one ``AckCheckpoint`` or ``CancelTurn``."""
_INFO_SECONDS = 3.0


class GrpcRuntime:
    """The runtime behind one target, for example ``127.0.0.1:50051``.

    The channel is made at the first use, inside the running event loop, because grpc.aio ties it to
    that loop; so this may be built before the loop runs or the process forks.
    """

    def __init__(self, target: str, options: RuntimeOptions, telemetry: Telemetry) -> None:
        self._target = target
        self._options = options
        self._telemetry = telemetry
        self._channel: grpc.aio.Channel | None = None

    async def info(self) -> RuntimeInfo:
        """Describe the runtime. Raises ``RuntimeUnavailable`` within 3 s."""
        request = pb.GetRuntimeInfoRequest()
        try:
            response = await self._stub().GetRuntimeInfo(request, timeout=_INFO_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise RuntimeUnavailable(error.code().name) from None
        return RuntimeInfo(
            agents=tuple(response.agents),
            resume_supported=response.resume_supported,
            checkpoint_modes=tuple(
                name
                for name, mode in requests.CHECKPOINT_MODES.items()
                if mode in response.checkpoint_modes
            ),
        )

    def start(self, call: AttemptCall) -> GrpcAttempt:
        """Run attempt 1, or continue the turn when the attempt is higher. Does not wait."""
        reader = AttemptReader(call.ref.turn_id, self._telemetry)
        return GrpcAttempt(lambda: self._open(call), reader, self._options.idle_seconds)

    async def ack(self, ref: AttemptRef, committed_index: int) -> bool:
        """Release gates up to an index. ``False``: not there, or nobody knows (drop it, resume)."""
        request = pb.AckCheckpointRequest(
            turn=requests.turn_ref(ref), committed_index=committed_index
        )
        acknowledge = self._stub().AckCheckpoint
        return await _told(lambda: acknowledge(request, timeout=_TELL_SECONDS))

    async def cancel(self, ref: AttemptRef, reason: str, grace_seconds: float) -> bool:
        """Ask an attempt to stop gracefully. ``False``: not there, or nobody knows."""
        request = pb.CancelTurnRequest(
            turn=requests.turn_ref(ref),
            reason=reason,
            grace_period=requests.duration(grace_seconds),
        )
        cancel_turn = self._stub().CancelTurn
        return await _told(lambda: cancel_turn(request, timeout=_TELL_SECONDS))

    async def close(self) -> None:
        """Release the channel, ending every open stream; the last call."""
        if self._channel is not None:
            await self._channel.close()

    def _open(self, call: AttemptCall) -> Call:
        # No timeout here: a turn may take an hour. GrpcAttempt bounds the silence instead.
        if call.ref.attempt == 1:
            return self._stub().RunTurn(requests.run_turn(call, self._options))
        return self._stub().ResumeTurn(requests.resume_turn(call, self._options))

    def _stub(self) -> pb_grpc.AgentRuntimeServiceAsyncStub:
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._target, options=CHANNEL_OPTIONS)
        return pb_grpc.AgentRuntimeServiceStub(self._channel)


async def _told(tell: Callable[[], Awaitable[object]]) -> bool:
    """Make an idempotent call, once more if the connection was just lost. Any failure is a no."""
    for _ in range(2):
        try:
            await tell()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                return False
        else:
            return True
    return False
