"""Real processes for tests: each in a group of its own, with a log, ended by its own id.

Knows nothing of what the processes serve, except that each says once where it listens.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic

from tests.support.edge_process import environment

POLL_SECONDS = 0.02
START_SECONDS = 40.0
STOP_SECONDS = 20.0
"""Twice what a platform gives: the machine that runs tests is busy."""
LOG_TAIL_LINES = 40

_WRITER = re.compile(r'"writer": "([0-9a-f-]{36})"')
_READY = re.compile(rb"listening on (?:http://)?127\.0\.0\.1:(\d+)")


class Child:
    """One process, started and not waited for."""

    def __init__(self, name: str, module: str, folder: Path, **variables: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=folder,
                env=environment(**variables),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    async def port(self, patience_seconds: float = START_SECONDS) -> int:
        """Wait until the process says where it listens."""
        deadline = monotonic() + patience_seconds
        while (ready := _READY.search(self.log.read_bytes())) is None:
            assert self.alive, f"{self.name} ended: {self.tail()}"
            assert monotonic() < deadline, f"{self.name} is not ready: {self.tail()}"
            await asyncio.sleep(POLL_SECONDS)
        return int(ready[1])

    def writer(self) -> str:
        """Return the name that an edge which is up writes its records by."""
        named = _WRITER.search(self.log.read_text(errors="replace"))
        assert named is not None, self.tail()
        return named[1]

    async def exit_code(self) -> int:
        """Wait until the process has ended by itself, and return its code."""
        deadline = monotonic() + STOP_SECONDS
        while (code := self._process.poll()) is None:
            assert monotonic() < deadline, f"{self.name} did not end: {self.tail()}"
            await asyncio.sleep(POLL_SECONDS)
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process itself."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it and its group, as a crash of its container would. Idempotent."""
        if not self.alive:  # its id may be somebody else's by now
            return
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(timeout=STOP_SECONDS)

    def tail(self) -> str:
        """Return the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def resident_bytes(self) -> int:
        """Return how much memory it occupies."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


class Crew:
    """Every process of one test; none outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: list[Child] = []

    def start(self, name: str, module: str, **variables: str) -> Child:
        """Start a module. Does not wait, so that several start side by side."""
        child = Child(f"{name}-{len(self._children)}", module, self.folder, **variables)
        self._children.append(child)
        return child

    def logs(self) -> str:
        """Return the end of every log."""
        return "\n".join(f"--- {child.name}\n{child.tail()}" for child in self._children)

    def close(self) -> None:
        """Kill what is left."""
        for child in self._children:
            child.kill()
