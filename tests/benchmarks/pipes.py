"""The pipes that are compared, and one measured run of one of them.

Every run has the same runtime process upstream and a load client of its own. The Firestore emulator
is not Firestore: its row says what the client side of that journal costs the edge, no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.load_client import START_SECONDS, Kind, Window
from tests.support.edge_process import edge_process, environment, start
from tests.support.firestore_emulator import Emulator, find_jar, fresh_project

WARM_UP_SECONDS = 3.0


class NotMeasured(Exception):
    """A pipe did not stand the load; the message is one line that says how."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is offered to a pipe."""

    turns: int
    rate: float
    """Tokens a second in each turn."""
    seconds: float
    """How long it is measured, after the warm-up."""


@dataclass(frozen=True, slots=True)
class Pipe:
    """One way from a gRPC stream to a browser."""

    name: str
    kind: Kind
    module: str
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Upstream:
    """The runtime that feeds every pipe."""

    pid: int
    target: str


def pipes(upstream: Upstream, load: Load, emulator_host: str | None) -> list[Pipe]:
    """Return what is compared, the recipe first."""
    recipe = {"RECIPE_RUNTIME": upstream.target}
    edge = {
        "EDGE_RUNTIME_TARGET": upstream.target,
        "EDGE_MAX_STREAMS": str(max(load.turns, 800)),
    }
    named = [
        ("recipe, asyncio", recipe | {"RECIPE_LOOP": "asyncio"}),
        ("recipe, uvloop", recipe | {"RECIPE_LOOP": "uvloop"}),
        ("edge, memory", edge | {"EDGE_JOURNAL": "memory:"}),
        ("edge, SQLite", edge | {"EDGE_JOURNAL": "sqlite:journal.sqlite3"}),
    ]
    if emulator_host is not None:
        firestore = {
            "EDGE_JOURNAL": "firestore:",
            "FIRESTORE_EMULATOR_HOST": emulator_host,
            "GOOGLE_CLOUD_PROJECT": fresh_project(),
        }
        named.append(("edge, Firestore emulator", edge | firestore))
    return [_pipe(name, variables) for name, variables in named]


def _pipe(name: str, variables: Mapping[str, str]) -> Pipe:
    if "RECIPE_LOOP" in variables:
        return Pipe(name, "recipe", "tests.benchmarks.recipe", variables)
    return Pipe(name, "edge", "edge", variables)


async def run(pipe: Pipe, upstream: Upstream, load: Load) -> Window:
    """Start a pipe, put the load on it, and return what was measured.

    Raises:
        NotMeasured: not every turn streams.
    """
    with tempfile.TemporaryDirectory() as folder:
        process = edge_process(Path(folder), module=pipe.module, **pipe.variables)
        async with process as edge:
            return await _load(pipe.kind, edge.port, edge.process.pid, upstream.pid, load)


async def _load(kind: Kind, port: int, edge_pid: int, runtime_pid: int, load: Load) -> Window:
    options = {
        "kind": kind,
        "port": port,
        "edge-pid": edge_pid,
        "runtime-pid": runtime_pid,
        "turns": load.turns,
        "warm-up": WARM_UP_SECONDS,
        "seconds": load.seconds,
    }
    client = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.benchmarks.load_client",
        *(f"--{name}={value}" for name, value in options.items()),
        env=environment(),
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        limit = 2 * START_SECONDS + WARM_UP_SECONDS + load.seconds
        output, errors = await asyncio.wait_for(client.communicate(), limit)
    finally:
        if client.returncode is None:
            client.kill()
    if client.returncode:
        raise NotMeasured(errors.decode().strip().rpartition("\n")[2])
    return Window(**json.loads(output))


@asynccontextmanager
async def load_runtime(rate: float) -> AsyncIterator[Upstream]:
    """Run the one runtime that all pipes share."""
    folder = Path.cwd()
    process = await start("tests.benchmarks.load_runtime", folder, {"LOAD_RATE": str(rate)})
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        yield Upstream(process.pid, line.decode().split()[-1])
    finally:
        process.kill()
        await process.communicate()


@contextlib.contextmanager
def emulator() -> Iterator[str | None]:
    """Yield where the Firestore emulator answers, if there is one here."""
    running, jar = os.environ.get("FIRESTORE_EMULATOR_HOST"), find_jar()
    if running or jar is None:
        yield running
        return
    with tempfile.TemporaryDirectory() as folder:
        started = Emulator(jar, Path(folder) / "emulator.log")
        try:
            started.start()
            yield started.host
        finally:
            started.kill()
