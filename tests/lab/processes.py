"""The processes of the lab: started, watched, restarted when they die, and gone when the lab is.

Knows nothing of what they do, except that each says once where it listens and has a ``/healthz``. Each is a session of its
own, so that Ctrl-C reaches the lab alone.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edge.process import StartFailed

START_SECONDS = 120.0
"""Long enough for a machine that does a hundred other things."""
RESTART_SECONDS = 2.0
"""A platform takes a moment to notice that a container is gone."""
WATCH_SECONDS = 0.5
HEALTH_SECONDS = 2.0
"""Who does not answer for so long gets no new connection."""

_READY = re.compile(rb".* listening on (?:http://)?127\.0\.0\.1:(\d+)\s*")
_WRITER = re.compile(r'"writer": "([0-9a-f-]{36})"')


@dataclass(slots=True, eq=False)
class Child:
    """A process that has said where it listens."""

    process: Process
    port: int
    log: Path
    healthy: bool = True
    paused: bool = False

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    def writer(self) -> str | None:
        """Return the name by which an edge's records know it; it logs that once."""
        named = _WRITER.search(self.log.read_text("utf-8", errors="replace"))
        return named[1] if named else None

    def pause(self) -> None:
        """Stop it in its tracks, as a platform does with an instance that it gives no CPU."""
        self.paused = True
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on, not knowing that any time has passed."""
        self.paused = False
        self.process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """End it at once. Idempotent."""
        if self.alive:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()


@dataclass(frozen=True, slots=True)
class Program:
    """How a process is started."""

    name: str
    module: str
    environ: Mapping[str, str]
    folder: Path
    """Where its log goes."""

    async def start(self, serial: int) -> Child:
        """Start a process and wait until it is ready. Raises ``StartFailed``."""
        log = self.folder / f"{self.name}-{serial}.log"
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.lab.bound", str(os.getpid()), self.module),
                env=self.environ,
                stdout=PIPE,
                stderr=errors,
                start_new_session=True,
            )
        try:
            return Child(process, await self._port(process), log)
        except BaseException:
            if process.returncode is None:
                process.kill()
            await process.wait()
            raise

    async def _port(self, process: Process) -> int:
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        except TimeoutError:
            raise StartFailed(f"{self.name} is not ready after {START_SECONDS:g} s") from None
        if (ready := _READY.fullmatch(line)) is None:
            raise StartFailed(f"{self.name} did not start")
        return int(ready[1])


@dataclass(slots=True)
class Fleet:
    """Replicas of one program behind a balancer that stays with one of them as long as it answers."""

    program: Program
    replicas: list[Child | None] = field(default_factory=list)
    """``None`` where one is dead and not yet restarted."""
    _target: Child | None = None
    _starts: int = 0

    @property
    def target(self) -> Child | None:
        """The replica that gets new connections; one that is not well if no other is."""
        if self._target is None or not self._target.alive or not self._target.healthy:
            living = [child for child in self.replicas if child is not None and child.alive]
            self._target = min(living, key=lambda child: not child.healthy, default=None)
        return self._target

    def port(self) -> int | None:
        """Return where new connections go, if there is anybody."""
        return self.target.port if self.target else None

    async def start(self, size: int) -> None:
        """Start the replicas. Raises ``StartFailed``."""
        await together(*(self._add() for _ in range(size)))

    async def keep(self) -> None:
        """Restart what dies and watch who answers, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for at in range(len(self.replicas)):
                tasks.create_task(self._keep(at))
            tasks.create_task(self._watch())

    async def close(self) -> None:
        """Kill what lives."""
        for child in self.replicas:
            if child is not None:
                await child.kill()

    async def _keep(self, at: int) -> None:
        while True:
            if (child := self.replicas[at]) is not None:
                await child.process.wait()
                self.replicas[at] = None
            await asyncio.sleep(RESTART_SECONDS)
            with suppress(StartFailed):  # the store may be away: it is tried again
                self.replicas[at] = await self._start()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            living = [child for child in self.replicas if child is not None]
            answers = await asyncio.gather(*(is_healthy(child.port) for child in living))
            for child, healthy in zip(living, answers, strict=True):
                child.healthy = healthy

    async def _add(self) -> None:
        self.replicas.append(await self._start())

    def _start(self) -> Awaitable[Child]:
        self._starts += 1
        return self.program.start(self._starts)


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Do several things at once. The first failure ends them all, and is raised."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for work in works:
                tasks.create_task(work)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def is_healthy(port: int) -> bool:
    """Ask a server of this machine whether it lives."""
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(
                    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
                )
                return b" 200 " in await reader.readline()
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError):
        return False
