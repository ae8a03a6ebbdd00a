"""Edges as real processes: one line and an exit code when they cannot start, and stopping in time."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.edge_process import EdgeProcess, edge_process, failed_start
from tests.support.http_client import Exchange, ask, exchange, post
from tests.support.issuer import AUDIENCE, ISSUER, Issuer, bearer, token
from tests.support.scripted_runtime import ScriptedRuntime, emit, hang, text

pytestmark = pytest.mark.realtime

KEY = ("Idempotency-Key", "key-0123456789ab")


@asynccontextmanager
async def edge_over(
    runtime: ScriptedRuntime, folder: Path, **variables: str
) -> AsyncIterator[EdgeProcess]:
    async with runtime.serve() as target:
        settings = {"EDGE_JOURNAL": "memory:", "EDGE_RUNTIME_TARGET": target, **variables}
        async with edge_process(folder, **settings, EDGE_DRAIN_SECONDS="3") as edge:
            yield edge


@asynccontextmanager
async def stream_of(edge: EdgeProcess) -> AsyncIterator[Exchange]:
    session_id = (await post(edge.port, "/v1/sessions", {})).json["session_id"]
    target = f"/v1/sessions/{session_id}"
    assert (await post(edge.port, f"{target}/turns", {"input": "Hi"}, KEY)).status == 202
    events = f"{target}/events?last_event_id=0-0"
    async with exchange(edge.port, "GET", events) as stream:
        yield stream


@pytest.mark.proves("T09", "S79")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_told_to_stop_ends_its_streams_resumably_and_leaves_in_time(
    tmp_path: Path, number: int
) -> None:
    runtime = ScriptedRuntime()
    runtime.play(emit(text("m1", "Hello")), hang())
    async with edge_over(runtime, tmp_path) as edge, stream_of(edge) as stream:
        await stream.until("token")
        stopping = asyncio.create_task(edge.stop(number))
        assert (await stream.messages())[-1].type == "reconnect"
        assert await stopping == 0


@pytest.mark.proves("P-HTTP-17", "P-HTTP-18")
async def test_an_edge_that_asks_for_tokens_answers_under_any_name_and_logs_none(
    tmp_path: Path,
) -> None:
    async with Issuer().serve() as issuer:
        tokens = {"EDGE_AUTH_ISSUER": ISSUER, "EDGE_AUTH_AUDIENCE": AUDIENCE}
        tokens["EDGE_AUTH_JWKS_URL"] = issuer.url
        async with edge_over(ScriptedRuntime(), tmp_path, **tokens) as edge:
            lines = [("Host", "chat.example.com"), ("Origin", "https://chat.example.com")]
            lines.append(("Content-Type", "application/json"))
            statuses = []
            for user in ([], [bearer(token(aud="other"))], [bearer(token("ec-1"))]):
                answer = await ask(edge.port, "POST", "/v1/sessions", [*lines, *user], b"{}")
                statuses.append(answer.status)
            assert statuses == [401, 401, 201]
            assert await edge.stop() == 0
            assert edge.process.stderr is not None
            assert b"eyJ" not in await edge.process.stderr.read()


@pytest.mark.proves("T09")
async def test_a_client_that_reads_nothing_cannot_hold_the_process(tmp_path: Path) -> None:
    runtime = ScriptedRuntime()
    runtime.play(*[emit(*[text("m1", "x" * 50_000)] * 4)] * 60, hang())
    async with edge_over(runtime, tmp_path) as edge, stream_of(edge) as stream:
        await stream.until("token")
        stream.writer.transport.pause_reading()  # type: ignore[attr-defined]
        assert await edge.stop() == 0


async def test_a_process_that_cannot_start_says_why_in_one_line(tmp_path: Path) -> None:
    settings = {"EDGE_JOURNAL": "memory:", "EDGE_START_WAIT_SECONDS": "0.2", "PORT": "0"}
    code, errors = await failed_start("edge", tmp_path, **settings)
    assert (code, errors) == (1, "edge: no agent runtime answers at 127.0.0.1:50051\n")
    code, errors = await failed_start("edge", tmp_path, **settings, HOST="0.0.0.0")
    assert code == 1
    assert errors.startswith("edge: HOST: ")
    assert errors.count("\n") == 1


async def test_a_wrong_setting_is_an_error_of_its_own_kind(tmp_path: Path) -> None:
    code, errors = await failed_start("edge", tmp_path, PORT="http")
    assert (code, errors) == (2, "edge: PORT: must be a whole number from 0 to 65535\n")
