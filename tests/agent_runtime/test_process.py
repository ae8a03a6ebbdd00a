"""``python -m agent_runtime`` as a process: its one ready line, its exit codes, its drain."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from unbroken.v1 import agent_runtime_pb2_grpc as rpc

from tests.agent_runtime.harness import Turn, ends, soon, texts

ROOT = Path(__file__).parents[2]
READY = "agent_runtime listening on "

pytestmark = pytest.mark.realtime


async def launch(**variables: str) -> asyncio.subprocess.Process:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AGENT_")},
        "PYTHONPATH": f"{ROOT}:{ROOT / 'proto' / 'gen'}",
        "AGENT_RUNTIME_LISTEN": "127.0.0.1:0",
        "AGENT_RUNTIME_AGENTS": "agent_runtime.demo:script,agent_runtime.demo:assistant",
        "AGENT_RUNTIME_DEMO_WORD_MS": "0",
        **variables,
    }
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agent_runtime",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environment,
    )  # fmt: skip


@asynccontextmanager
async def launched(
    **variables: str,
) -> AsyncIterator[tuple[asyncio.subprocess.Process, rpc.AgentRuntimeServiceAsyncStub]]:
    process = await launch(**variables)
    try:
        assert process.stdout is not None
        line = (await soon(process.stdout.readline())).decode()
        assert line.startswith(READY), line
        async with grpc.aio.insecure_channel(line.removeprefix(READY).strip()) as channel:
            yield process, rpc.AgentRuntimeServiceStub(channel)
    finally:
        if process.returncode is None:
            process.kill()
        await soon(process.communicate())


def script(*steps: object) -> str:
    return json.dumps(steps)


async def refused(**variables: str) -> tuple[int | None, str]:
    """Return how a process that cannot start ends, and what it says."""
    process = await launch(**variables)
    _, error = await soon(process.communicate())
    return process.returncode, error.decode()


async def test_a_process_serves_its_agents_and_stops_cleanly(tmp_path: Path) -> None:
    notes = tmp_path / "notes.jsonl"
    async with launched(AGENT_RUNTIME_DEMO_NOTES=str(notes)) as (process, stub):
        turn = Turn(
            stub, "t", script({"say": "hello"}, {"tool": "append_note", "args": {"text": "x"}})
        )
        assert texts(await turn.start().run()) == ["hello"]
        process.send_signal(signal.SIGTERM)
        assert await soon(process.wait()) == 0
    assert len(notes.read_text().splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_drain_suspends_the_turn_and_another_process_ends_it(
    number: signal.Signals,
) -> None:
    steps = script({"say": "one"}, {"wait": 3600}, {"say": "two"})
    async with launched() as (process, stub):
        turn = Turn(stub, "t", steps).start()
        await turn.until("message_completed")
        process.send_signal(number)
        await turn.rest()
        assert turn.kinds[-1] == "turn_suspended"
        assert await soon(process.wait()) == 0
    turn.input = []
    for event in turn.history:
        for part in event.turn_started.input:
            part.text = part.text.replace("3600", "0")
    async with launched() as (_, stub):
        turn.stub = stub
        assert texts(await turn.resume().rest()) == ["two"]


@pytest.mark.proves("P-RUN-11")
async def test_a_tool_that_outlives_the_drain_costs_no_orderly_exit() -> None:
    async with launched(AGENT_RUNTIME_DRAIN_SECONDS="0.2") as (process, stub):
        turn = Turn(stub, "t", script({"sleep_tool": 3600, "safety": "unsafe"})).start()
        await turn.ack((await turn.until("tool_call_started")).index)
        await turn.until("tool_call_progress")
        process.send_signal(signal.SIGTERM)
        assert await turn.code() is grpc.StatusCode.UNAVAILABLE
        assert await soon(process.wait()) == 0
    async with launched() as (_, stub):
        turn.stub = stub
        assert ends(await turn.resume().rest()) == {"c1": "UNKNOWN"}


@pytest.mark.proves("P-RUN-11")
@pytest.mark.parametrize("tool", ["deaf", "stuck"])
@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_tool_that_cannot_be_stopped_holds_up_no_exit(tool: str, cancelled: bool) -> None:
    stubborn = "tests.agent_runtime.stubborn:stubborn"
    async with launched(AGENT_RUNTIME_AGENTS=stubborn, AGENT_RUNTIME_DRAIN_SECONDS="0.2") as (
        process,
        stub,
    ):
        turn = Turn(stub, "t", tool).start()
        await turn.ack((await turn.until("tool_call_started")).index)
        await turn.until("tool_call_progress")
        if cancelled:
            await turn.cancel(grace_seconds=0.05)
            assert ends(await turn.rest()) == {"c1": "UNKNOWN"}
        process.send_signal(signal.SIGTERM)
        assert await soon(process.wait()) == 0


async def test_a_log_line_has_types_and_places_and_no_content() -> None:
    async with launched(AGENT_RUNTIME_AGENTS="tests.agent_runtime.stubborn:loud") as (
        process,
        stub,
    ):
        await Turn(stub, "t", "s3cret").start().rest()
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        lines = (await soon(process.stderr.read())).decode()
    assert re.sub(r":\d+\)", ":N)", lines).splitlines() == [
        "WARNING http.client: retrying %s",
        "ERROR grpc._cython.cygrpc: Unexpected error (ValueError at stubborn.py:N)",
        "ERROR asyncio: Task exception was never retrieved (ValueError at stubborn.py:N)",
    ]


@pytest.mark.proves("S36", "S40")
async def test_a_killed_process_does_not_make_a_note_twice(tmp_path: Path) -> None:
    notes = tmp_path / "notes.jsonl"
    steps = script(
        {"tool": "append_note", "args": {"text": "once"}},
        {"sleep_tool": 3600, "safety": "unsafe"},
        {"say": "done"},
    )
    async with launched(AGENT_RUNTIME_DEMO_NOTES=str(notes)) as (process, stub):
        turn = Turn(stub, "t", steps).start()
        await turn.ack((await turn.until("tool_call_started", 1)).index)
        await turn.ack((await turn.until("tool_call_started", 2)).index)
        await turn.until("tool_call_progress")
        process.kill()
        assert await turn.code() is grpc.StatusCode.UNAVAILABLE
    async with launched(AGENT_RUNTIME_DEMO_NOTES=str(notes)) as (_, stub):
        turn.stub = stub
        events = await turn.resume().rest()
    assert ends(events) == {"c2": "UNKNOWN"}
    assert texts(events) == ["done"]
    assert len(notes.read_text().splitlines()) == 1


async def test_a_port_in_use_is_one_line_and_exit_code_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, error = await refused(AGENT_RUNTIME_LISTEN=address)
    assert (code, error) == (1, f"agent_runtime: cannot listen on {address}\n")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("AGENT_RUNTIME_AGENTS", "no.such.module:agent", "cannot load no.such.module:agent"),
        ("AGENT_RUNTIME_AGENTS", "agent_runtime.demo:nobody", "cannot load"),
        ("AGENT_RUNTIME_AGENTS", "agent_runtime.demo", "module:attribute"),
        ("AGENT_RUNTIME_AGENTS", "agent_runtime.demo:__doc__", "neither an async function"),
        ("AGENT_RUNTIME_LISTEN", "nowhere", "AGENT_RUNTIME_LISTEN"),
        ("AGENT_RUNTIME_DEMO_WORD_MS", "fast", "AGENT_RUNTIME_DEMO_WORD_MS"),
    ],
)
async def test_what_cannot_be_used_is_one_line_and_exit_code_2(
    variable: str, value: str, words: str
) -> None:
    code, error = await refused(**{variable: value})
    assert code == 2
    assert words in error
    assert error.count("\n") == 1, error
