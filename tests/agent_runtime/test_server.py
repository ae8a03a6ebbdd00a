"""The server round the service: health, reflection, and what its configuration may be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]
from grpc_reflection.v1alpha import (  # type: ignore[import-untyped]
    reflection_pb2,
    reflection_pb2_grpc,
)
from unbroken.v1 import agent_runtime_pb2 as pb
from unbroken.v1 import agent_runtime_pb2_grpc as rpc

from agent_runtime import TurnContext, agent
from agent_runtime.config import Config, ConfigError
from agent_runtime.server import MAX_REQUEST_BYTES, SERVICE_NAME, PortUnavailable, Server
from tests.agent_runtime.harness import soon

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@agent()
async def nothing(ctx: TurnContext) -> None: ...


def make_server(config: Config) -> Server:
    return Server(config, {"nothing": nothing}, instance_id="i", wall_clock=lambda: 0.0)


@asynccontextmanager
async def channel_to(config: Config) -> AsyncIterator[tuple[Server, grpc.aio.Channel]]:
    server = make_server(config)
    address = await server.start()
    async with grpc.aio.insecure_channel(address) as channel:
        yield server, channel
    await soon(server.stop())


async def test_health_covers_the_process_and_the_service() -> None:
    async with channel_to(Config(listen="127.0.0.1:0")) as (server, channel):
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", SERVICE_NAME):
            answer = await soon(stub.Check(health_pb2.HealthCheckRequest(service=name)))
            assert answer.status == SERVING
        watch = stub.Watch(health_pb2.HealthCheckRequest(service=SERVICE_NAME))
        assert (await soon(watch.read())).status == SERVING
        await soon(server._health.enter_graceful_shutdown())
        assert (await soon(watch.read())).status == NOT_SERVING
        watch.cancel()


async def test_a_history_beyond_the_limit_is_told_from_an_overload_by_its_details() -> None:
    async with channel_to(Config(listen="127.0.0.1:0")) as (_, channel):
        stub = rpc.AgentRuntimeServiceStub(channel)
        text = "x" * MAX_REQUEST_BYTES
        event = pb.AgentEvent(turn_started=pb.TurnStarted(input=[pb.ContentPart(text=text)]))
        for call in (
            stub.RunTurn(pb.RunTurnRequest(history=[event])),
            stub.ResumeTurn(pb.ResumeTurnRequest(history=[event])),
        ):
            assert await soon(call.code()) is grpc.StatusCode.RESOURCE_EXHAUSTED
            details = await soon(call.details())
            assert details.startswith("SERVER: Received message larger than max (")


@pytest.mark.parametrize(("production", "listed"), [(False, True), (True, False)])
async def test_reflection_is_there_in_development_only(production: bool, listed: bool) -> None:
    async with channel_to(Config(listen="127.0.0.1:0", production=production)) as (_, channel):
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        # Handed over whole: a call that is refused at once may end before a write of its own.
        call = stub.ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        )
        if listed:
            services = (await soon(call.read())).list_services_response.service
            assert SERVICE_NAME in {service.name for service in services}
            call.cancel()
        else:
            assert await soon(call.code()) is grpc.StatusCode.UNIMPLEMENTED


async def test_a_port_in_use_is_refused() -> None:
    first = make_server(Config(listen="127.0.0.1:0"))
    address = await first.start()
    with pytest.raises(PortUnavailable, match=address):
        await make_server(Config(listen=address)).start()
    await soon(first.stop())


def test_an_empty_environment_is_a_development_server_on_loopback() -> None:
    assert Config.from_environment({}) == Config(
        listen="127.0.0.1:50051", agents="agent_runtime.demo:assistant", production=False
    )


def test_cloud_run_is_production_unless_it_says_otherwise() -> None:
    assert Config.from_environment({"K_SERVICE": "x"}).production
    told = {"K_SERVICE": "x", "AGENT_RUNTIME_ENV": "development"}
    assert not Config.from_environment(told).production


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AGENT_RUNTIME_LISTEN", "nowhere"),
        ("AGENT_RUNTIME_LISTEN", "host:99999"),
        ("AGENT_RUNTIME_LISTEN", "host:1 2"),
        ("AGENT_RUNTIME_ENV", "prod"),
        ("AGENT_RUNTIME_DRAIN_SECONDS", "0.0"),
        ("AGENT_RUNTIME_DRAIN_SECONDS", "nan"),
        ("AGENT_RUNTIME_DRAIN_SECONDS", "soon"),
        ("AGENT_RUNTIME_DRAIN_SECONDS", "8.1"),
        ("AGENT_RUNTIME_MAX_TURNS", "-1"),
        ("AGENT_RUNTIME_MAX_TURNS", "1.5"),
        ("AGENT_RUNTIME_LISTENS", "host:1"),
    ],
)
def test_an_unusable_variable_is_named_and_its_value_is_not_told(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Config.from_environment({name: value})
    rule = str(refused.value)
    assert rule.startswith(f"{name}: ")
    assert value not in rule.removeprefix(name).split()


def test_what_is_set_but_empty_or_of_the_demo_agents_is_passed_over() -> None:
    environment = {"AGENT_RUNTIME_DRAIN_SECONDS": " ", "AGENT_RUNTIME_DEMO_WORD_MS": "fast"}
    assert Config.from_environment(environment) == Config()
