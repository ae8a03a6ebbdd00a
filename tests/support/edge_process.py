"""Starts ``python -m edge``, or another module that says where it listens, as a real process.

Knows nothing of what it serves. Only processes started here are ever signalled.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_SECONDS = 30.0
STOP_SECONDS = 10.0
"""What a platform gives a process after SIGTERM."""

_URL = re.compile(rb"edge listening on http://127\.0\.0\.1:(\d+)\n")


@dataclass(slots=True)
class EdgeProcess:
    """A process that has said where it listens."""

    process: Process
    port: int

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code. Raises ``TimeoutError`` after 10 s."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), STOP_SECONDS)


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment, without its settings of an edge, and with our own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("EDGE_", "AGENT_", "PORT"))}
    path = os.pathsep.join([str(ROOT), str(ROOT / "proto" / "gen")])
    return {**kept, "PYTHONPATH": path, **variables}


async def start(module: str, folder: Path, variables: Mapping[str, str]) -> Process:
    """Start a module in a folder of its own."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        cwd=folder,
        env=environment(**variables),
        stdout=PIPE,
        stderr=PIPE,
    )


async def failed_start(module: str, folder: Path, **variables: str) -> tuple[int, str]:
    """Return the exit code and everything on stderr of a process that does not start."""
    process = await start(module, folder, variables)
    output, errors = await asyncio.wait_for(process.communicate(), START_SECONDS)
    assert output == b"", output
    assert process.returncode is not None
    return process.returncode, errors.decode()


@asynccontextmanager
async def edge_process(
    folder: Path, *, module: str = "edge", **variables: str
) -> AsyncIterator[EdgeProcess]:
    """Run a process from its ready line on; at the end it is stopped if it still lives."""
    process = await start(module, folder, {"PORT": "0", **variables})
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        match = _URL.fullmatch(line)
        assert match is not None, line
        yield EdgeProcess(process, int(match[1]))
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    """Stop a process in good order first: one that is killed leaves its own children behind."""
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 3 * STOP_SECONDS)
        except TimeoutError:
            process.kill()
    await process.communicate()
