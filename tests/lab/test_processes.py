"""The lab's own processes: what it starts ends with it, and what dies comes back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.lab.processes import START_SECONDS
from tests.support.http_client import ask, post
from tests.support.processes import POLL_SECONDS, Child, Crew

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(420)]
PATIENCE_SECONDS = 60.0
PROCESSES = 5  # a runtime, two edges, two naive servers


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    made = Crew(tmp_path)
    yield made
    made.close()


def children_of(pid: int) -> set[int]:
    """Return the processes that a process has started and that still live."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in brackets may hold anything, so what counts is behind it.
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid and state != "Z":
            found.add(int(path.parent.name))
    return found


def _living(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


async def _until_gone(pids: set[int]) -> None:
    deadline = monotonic() + PATIENCE_SECONDS
    while left := _living(pids):
        assert monotonic() < deadline, left
        await asyncio.sleep(POLL_SECONDS)


async def _started(crew: Crew) -> tuple[Child, int]:
    lab = crew.start("lab", "tests.lab", PORT="0", TMPDIR=str(crew.folder))
    return lab, await lab.port(START_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_everything_that_the_lab_started_ends_with_it(
    crew: Crew, number: signal.Signals
) -> None:
    if sys.platform != "linux":
        pytest.skip("NOT RUN: only Linux tells of processes in /proc, and of a parent's death")
    lab, _ = await _started(crew)
    pids = children_of(lab.pid)
    assert len(pids) == PROCESSES
    try:
        lab.signal(number)
        code = await lab.exit_code()
        await _until_gone(pids)
    finally:
        for pid in _living(pids):  # none, unless the test fails
            os.kill(pid, signal.SIGKILL)
    left = list(crew.folder.glob("unbroken-lab-*"))
    if number is signal.SIGKILL:
        assert left, "nobody was left to take it away"
    else:
        assert (code, left) == (0, [])


async def _look(port: int) -> Any:
    answer = await ask(port, "GET", "/api/look?session=&chat=")
    assert answer.status == 200, answer
    return answer.json


async def _struck(port: int, trouble: str, *, on: bool = True) -> Any:
    return await post(port, f"/api/troubles/{trouble}", {"session": "", "on": on})


async def test_who_is_killed_or_paused_is_seen_and_comes_back(crew: Crew) -> None:
    _, port = await _started(crew)

    async def until(states: list[str], target: int) -> None:
        deadline = monotonic() + PATIENCE_SECONDS
        while True:
            look = await _look(port)
            columns = [look[name]["servers"] for name in ("durable", "naive")]
            if all(
                [server["state"] for server in servers] == states and servers[target]["target"]
                for servers in columns
            ):
                return
            assert monotonic() < deadline, json.dumps(look)
            await asyncio.sleep(POLL_SECONDS)

    await until(["up", "up"], target=0)
    await _struck(port, "kill")
    await until(["dead", "up"], target=1)
    await until(["up", "up"], target=1)
    await _struck(port, "pause")
    await until(["up", "paused"], target=0)  # as soon as the balancer has noticed
    assert (await ask(port, "GET", "/durable/healthz")).status == 200
    await _struck(port, "pause", on=False)
    await until(["up", "up"], target=0)
