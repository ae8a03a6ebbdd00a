"""``make run``: a runtime and an edge that start and stop as one."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.edge_process import edge_process, failed_start
from tests.support.http_client import ask, exchange, post

pytestmark = pytest.mark.realtime


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_one_command_answers_a_question_and_stops_cleanly(
    tmp_path: Path, number: int
) -> None:
    async with edge_process(tmp_path, module="edge.local") as edge:
        assert (await ask(edge.port, "GET", "/readyz")).status == 200
        session_id = (await post(edge.port, "/v1/sessions", {})).json["session_id"]
        headers = [
            ("Idempotency-Key", "key-0123456789ab"),
            ("Content-Type", "application/json"),
            ("Accept", "text/event-stream"),
        ]
        turns = f"/v1/sessions/{session_id}/turns"
        body = b'{"input":"count to 3"}'
        async with exchange(edge.port, "POST", turns, headers, body) as stream:
            assert (await stream.messages())[-1].type == "done"
        assert (tmp_path / "var" / "unbroken.sqlite3").exists()
        assert await edge.stop(number) == 0


async def test_a_runtime_that_dies_at_the_start_is_said_and_ends_it_all(tmp_path: Path) -> None:
    agents = {"AGENT_RUNTIME_AGENTS": "nowhere:nothing", "PORT": "0"}
    code, errors = await failed_start("edge.local", tmp_path, **agents)
    assert code == 1
    assert "nowhere" in errors
    assert errors.splitlines()[-1] == "edge.local: the agent runtime did not start"
    assert "Traceback" not in errors


async def test_a_port_in_use_stops_the_runtime_too(tmp_path: Path) -> None:
    async with edge_process(tmp_path, module="edge.local") as edge:
        code, errors = await failed_start("edge.local", tmp_path, PORT=str(edge.port))
    assert code == 1
    assert errors == f"edge.local: cannot listen on 127.0.0.1:{edge.port}: Address already in use\n"
