"""The container and the deployment descriptions keep the platforms' rules."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from deploy.check_service_yaml import complaints
from edge.config import Config
from tests.architecture.source import ROOT, assert_clean, run_tool

SERVICE = ROOT / "deploy" / "service.yaml"

Service = dict[str, Any]


def _containers(service: Service) -> list[dict[str, Any]]:
    containers: list[dict[str, Any]] = service["spec"]["template"]["spec"]["containers"]
    return containers


@pytest.fixture
def service() -> Service:
    parsed: Service = yaml.safe_load(SERVICE.read_text())
    return copy.deepcopy(parsed)


def test_the_dockerfile_is_clean() -> None:
    assert_clean(run_tool("hadolint", "Dockerfile"))


def test_the_service_keeps_the_rules_of_cloud_run(service: Service) -> None:
    assert complaints(service) == []


def test_the_edge_is_served_http_1(service: Service) -> None:
    (ports,) = [container["ports"] for container in _containers(service) if "ports" in container]

    assert [port["name"] for port in ports] == ["http1"]


def _environment(container: dict[str, Any]) -> dict[str, str]:
    """Return what the container sees: its own variables and those of the platform."""
    own = {variable["name"]: variable["value"] for variable in container["env"]}
    return own | {"PORT": "8080", "K_SERVICE": "unbroken"}


def test_the_edge_accepts_the_configuration_it_is_deployed_with(service: Service) -> None:
    config = Config.from_environ(_environment(_containers(service)[0]))

    assert config.production
    assert (config.host, config.port) == ("0.0.0.0", 8080)
    assert config.tokens is not None


def _two_ingress_containers(service: Service) -> None:
    _containers(service)[1]["ports"] = [{"containerPort": 1}]


def _no_startup_probe(service: Service) -> None:
    del _containers(service)[1]["startupProbe"]


def _underscore_in_a_name(service: Service) -> None:
    _containers(service)[0]["name"] = "the_edge"


def _tcp_liveness(service: Service) -> None:
    _containers(service)[0]["livenessProbe"] = {"tcpSocket": {"port": 8080}}


def _long_start(service: Service) -> None:
    _containers(service)[0]["startupProbe"]["failureThreshold"] = 121


def _nameless_grpc_port(service: Service) -> None:
    _containers(service)[1]["livenessProbe"]["grpc"] = {}


def _endless_requests(service: Service) -> None:
    service["spec"]["template"]["spec"]["timeoutSeconds"] = 3601


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (_two_ingress_containers, "exactly one container must have ports"),
        (_no_startup_probe, "agent-runtime is depended on, but has no startupProbe"),
        (_underscore_in_a_name, "container name 'the_edge' is no DNS label"),
        (
            _tcp_liveness,
            "edge.livenessProbe: a TCP probe tells nothing of liveness, and is refused",
        ),
        (_long_start, "edge.startupProbe: the window is above 240 s"),
        (
            _nameless_grpc_port,
            "agent-runtime.livenessProbe: a container without ports must name the probe's port",
        ),
        (_endless_requests, "timeoutSeconds is above 3600"),
    ],
)
def test_a_broken_rule_is_told(
    service: Service, damage: Callable[[Service], None], complaint: str
) -> None:
    damage(service)

    assert complaint in complaints(service)
