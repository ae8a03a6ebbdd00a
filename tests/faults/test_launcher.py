"""``make run`` and the command line: both processes stop as one, and what is missing is one line."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import uuid
from pathlib import Path
from time import monotonic

import pytest

from edge.core.log import Acquire
from tests.faults.client import Client, saw
from tests.faults.scene import AGENTS, QUICK, Scene
from tests.support.http_client import post
from tests.support.processes import POLL_SECONDS, STOP_SECONDS, Child, Crew

pytestmark = pytest.mark.realtime


def children_of(pid: int) -> list[int]:
    """Return the ids of a process's children."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def gone(pid: int) -> bool:
    deadline = monotonic() + STOP_SECONDS
    while exists(pid):
        if monotonic() > deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


def launcher(crew: Crew, **variables: str) -> Child:
    settings = {**QUICK, "AGENT_RUNTIME_AGENTS": AGENTS, "PORT": "0"}
    return crew.start("local", "edge.local", **{**settings, **variables})


async def asked(port: int) -> Client:
    """Start a long turn and see its first word."""
    session_id = str((await post(port, "/v1/sessions", {})).json["session_id"])
    body = {"input": "count to 5000", "agent": "assistant"}
    key = ("Idempotency-Key", "key-0123456789ab")
    assert (await post(port, f"/v1/sessions/{session_id}/turns", body, key)).status == 202
    client = Client(session_id)
    await client.watch(port, saw("token"))
    return client


@pytest.mark.proves("S05", "P-LOG-15")
async def test_ctrl_c_amid_a_turn_stops_both_and_the_next_start_ends_the_turn(
    sqlite_scene: Scene,
) -> None:
    crew, journal = sqlite_scene.crew, sqlite_scene.store.variables()
    first = launcher(crew, AGENT_RUNTIME_DEMO_WORD_MS="20", **journal)
    client = await asked(await first.port())
    (runtime,) = children_of(first.pid)
    # As a terminal does: to the whole foreground group. The runtime is not in it.
    os.killpg(first.pid, signal.SIGINT)
    assert await first.exit_code() == 0
    assert await gone(runtime)
    assert "Traceback" not in first.tail()
    second = launcher(crew, AGENT_RUNTIME_DEMO_WORD_MS="0", **journal)
    await client.follow(await second.port())
    assert client.screen[-1].type == "done"
    (runtime,) = children_of(second.pid)
    second.signal(signal.SIGHUP)  # a closed terminal
    assert await second.exit_code() == 0
    assert await gone(runtime)
    history = await sqlite_scene.judge(client)
    writers = [r.writer for r in history.records if isinstance(r, Acquire)]
    assert len({uuid.UUID(writer) for writer in writers}) == 2


async def test_a_launcher_whose_runtime_dies_stops_and_says_so(sqlite_scene: Scene) -> None:
    child = launcher(sqlite_scene.crew)
    await child.port()
    (runtime,) = children_of(child.pid)
    os.kill(runtime, signal.SIGKILL)
    assert await child.exit_code() == 1
    assert child.tail().splitlines()[-1] == "edge.local: the agent runtime ended"


async def test_a_command_line_that_cannot_start_says_why_in_one_line(tmp_path: Path) -> None:
    """All at once: what takes the time is starting a process."""
    crew = Crew(tmp_path)
    (tmp_path / "file").write_text("no folder")
    gone_port = {"EDGE_RUNTIME_TARGET": "127.0.0.1:1", "EDGE_START_WAIT_SECONDS": "0.2"}
    firestore = {
        "EDGE_JOURNAL": "firestore:",
        "GOOGLE_CLOUD_PROJECT": "p",
        "FIRESTORE_EMULATOR_HOST": "127.0.0.1:1",
        "EDGE_START_WAIT_SECONDS": "0.2",
    }
    memory = {"EDGE_JOURNAL": "memory:"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        expected = {
            crew.start("edge", "edge", **memory, PORT=port): "Address already in use",
            crew.start("edge", "edge", **gone_port, **memory, PORT="0"): "no agent runtime",
            crew.start("edge", "edge", **firestore, PORT="0"): "the journal does not answer",
            crew.start("edge", "edge", EDGE_JOURNAL="sqlite:file/j.sqlite3", PORT="0"): "no folder",
            crew.start("edge", "edge", EDGE_JOURNAL="sqlite:none/j.sqlite3", PORT="0"): "no folder",
            crew.start("edge", "edge", EDGE_TTL_SECONDS="soon"): "EDGE_TTL_SECONDS: ",
            crew.start("runtime", "agent_runtime", AGENT_RUNTIME_LISTEN=f"127.0.0.1:{port}"): port,
            crew.start(
                "local", "edge.local", EDGE_JOURNAL="sqlite:file/j.db", PORT="0"
            ): "no folder",
        }
        try:
            for child, says in expected.items():
                assert await child.exit_code() > 0
                (line,) = child.log.read_text().splitlines()
                assert says in line
        finally:
            crew.close()
