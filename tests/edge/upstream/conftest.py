"""Fixtures: a scripted runtime on loopback, and the edge's client of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from edge.ports import AttemptCall, AttemptRef
from edge.upstream.client import GrpcRuntime
from edge.upstream.requests import RuntimeOptions
from tests.support.scripted_runtime import ScriptedRuntime

REF = AttemptRef("s1", "t1", 1, "u1")
CALL = AttemptCall(ref=REF, agent="script")


class Counts:
    """A telemetry that remembers."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def count(self, name: str) -> None:
        self.counted[name] += 1

    def gauge(self, name: str, value: float) -> None:
        self.counted[name] = int(value)


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime()


@pytest.fixture
async def target(runtime: ScriptedRuntime) -> AsyncIterator[str]:
    async with runtime.serve() as target:
        yield target


@pytest.fixture
async def client(target: str, counts: Counts) -> AsyncIterator[GrpcRuntime]:
    client = GrpcRuntime(target, RuntimeOptions(), counts)
    yield client
    await client.close()
