"""A script under node that a test talks with: lines of JSON go in, lines of JSON come out.

Knows nothing of what the script does.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.node import find_package

FOLDER = Path(__file__).parent
PATIENCE_SECONDS = 60.0
"""Longer than node takes to start on a machine that is busy with something else."""
_LINE_LIMIT_BYTES = 16 * 1024 * 1024

State = Mapping[str, Any]


class NodeScript:
    """A running script. ``last`` is the newest line that it said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.last: State = {}
        self.heard: list[State] = []
        self._process = process

    async def tell(self, line: object) -> None:
        """Send one line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        await self._process.stdin.drain()

    async def until(self, holds: Callable[[State], bool]) -> State:
        """Read lines until one makes ``holds`` true, and return it."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (self.last and holds(self.last)):
                line = await self._process.stdout.readline()
                assert line, f"the script ended; its last word was {self.last}"
                self.last = json.loads(line)
                self.heard.append(self.last)
        return self.last


def answer_of(name: str, work: object, package: str) -> list[Any]:
    """Give a script of this folder all its ``work`` at once, and return the lines that it answers."""
    ran = subprocess.run(
        [find_package(package), FOLDER / name],
        check=False,
        input=json.dumps(work),
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@asynccontextmanager
async def node_script(name: str, options: object, package: str = "ai") -> AsyncIterator[NodeScript]:
    """Run a script of this folder with ``options`` as its one argument, if ``package`` is installed."""
    process = await asyncio.create_subprocess_exec(
        find_package(package),
        name,
        json.dumps(options),
        cwd=FOLDER,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE_LIMIT_BYTES,
    )
    try:
        yield NodeScript(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
