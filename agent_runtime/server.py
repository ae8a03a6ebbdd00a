"""The gRPC server round the service: health, reflection, keepalive, limits, and an orderly end.

A request of more than ``MAX_REQUEST_BYTES``, as a long history makes it, is refused by gRPC before the
service sees it: RESOURCE_EXHAUSTED, as for too many turns, but with details that begin with
``SERVER: Received message larger than max``. The same request would be refused again, everywhere.

Knows nothing of the environment or of signals; ``agent_runtime.__main__`` brings both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]
from grpc_health.v1._async import HealthServicer  # type: ignore[import-untyped]
from grpc_reflection.v1alpha import reflection  # type: ignore[import-untyped]
from unbroken.v1 import agent_runtime_pb2 as pb
from unbroken.v1 import agent_runtime_pb2_grpc as rpc

from agent_runtime.agent import Agent
from agent_runtime.config import Config
from agent_runtime.service import AgentRuntimeService, Limits

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["AgentRuntimeService"].full_name
LAST_WRITES_SECONDS = 1.0
"""After the drain: how long the streams may take to deliver their last words."""

MAX_REQUEST_BYTES = 16 * 1024 * 1024
"""The history of a session travels in one request; gRPC's own limit is 4 MiB."""

OPTIONS = (
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_concurrent_streams", 10_000),
    # Clients ping idle streams; the default would end the connection with too_many_pings.
    # gRPC ignores names that it does not know: this one lacks the ``recv`` of its C macro.
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # The server probes too: a client that vanished must not keep a turn alive unread. The first
    # time-out is TCP's, the second that of a peer whose wire still acknowledges.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
    # Two processes on one port would each get half of the acknowledgements.
    ("grpc.so_reuseport", 0),
)


class PortUnavailable(Exception):
    """The address cannot be listened on."""


class Server:
    """One runtime process's server. ``start`` it once, ``stop`` it once."""

    def __init__(
        self,
        config: Config,
        agents: Mapping[str, Agent],
        *,
        instance_id: str,
        wall_clock: Callable[[], float],
    ) -> None:
        self._config = config
        self._service = AgentRuntimeService(
            agents,
            instance_id=instance_id,
            wall_clock=wall_clock,
            limits=Limits(max_attempts=config.max_attempts),
        )
        self._health = HealthServicer()
        self._server = grpc.aio.server(options=OPTIONS)

    async def start(self) -> str:
        """Listen, and return the bound address.

        Raises:
            PortUnavailable: it cannot be bound.
        """
        rpc.add_AgentRuntimeServiceServicer_to_server(self._service, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        if not self._config.production:
            names = (SERVICE_NAME, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
            reflection.enable_server_reflection((*names, reflection.SERVICE_NAME), self._server)
        host = self._config.listen.rpartition(":")[0]
        try:
            port = self._server.add_insecure_port(self._config.listen)
        except RuntimeError as error:
            raise PortUnavailable(f"cannot listen on {self._config.listen}") from error
        await self._server.start()
        for name in ("", SERVICE_NAME):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return f"{host}:{port}"

    async def stop(self) -> None:
        """Drain and stop listening; what ignores its cancellation is left running."""
        await self._health.enter_graceful_shutdown()
        await self._service.drain(self._config.drain_seconds)
        await self._server.stop(LAST_WRITES_SECONDS)
