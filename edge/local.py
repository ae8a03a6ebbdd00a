"""``python -m edge.local``, or ``make run``: an agent runtime and an edge on this machine, as one.

Knows nothing of either but how it is started. The runtime is a child process of its own session, so
that Ctrl-C reaches only this launcher, which stops the edge first and the runtime after it.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import replace

from edge.config import Config, ConfigError, SqliteChoice
from edge.main import announce, serve
from edge.process import StartFailed, run_to_exit, unless_stopped
from edge.telemetry import set_up_logging

_READY = re.compile(rb"agent_runtime listening on (\S+)\s*")
_START_SECONDS = 30.0
_CHILD_STOP_SECONDS = 10.0
_STOP_SECONDS = 25.0


def main() -> None:
    """Run both until SIGTERM or SIGINT, or until one of them ends."""
    try:
        config = Config.from_environ(os.environ)
    except ConfigError as error:
        sys.stderr.write(f"edge.local: {error}\n")
        raise SystemExit(2) from None
    set_up_logging()
    run_to_exit("edge.local", lambda stop: _run(config, stop), _STOP_SECONDS)


async def _run(config: Config, stop: asyncio.Event) -> None:
    if isinstance(config.journal, SqliteChoice):
        with suppress(OSError):  # the journal says in one line what is wrong with its folder
            config.journal.path.parent.mkdir(parents=True, exist_ok=True)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "agent_runtime",
        env={**os.environ, "AGENT_RUNTIME_LISTEN": "127.0.0.1:0"},
        stdout=PIPE,
        start_new_session=True,
    )
    try:
        target = await unless_stopped(stop, _ready(child))
        await _run_edge(replace(config, runtime_target=target), child, stop)
    finally:
        await _stop(child)


async def _ready(child: Process) -> str:
    """Wait for the runtime's one ready line; its own line on stderr says why there is none."""
    assert child.stdout is not None
    try:
        line = await asyncio.wait_for(child.stdout.readline(), _START_SECONDS)
    except TimeoutError:
        raise StartFailed(f"the agent runtime is not ready after {_START_SECONDS:g} s") from None
    match = _READY.fullmatch(line)
    if match is None:
        raise StartFailed("the agent runtime did not start")
    return match[1].decode("ascii")


async def _run_edge(config: Config, child: Process, stop: asyncio.Event) -> None:
    edge = asyncio.create_task(serve(config, stop, announce))
    ended = asyncio.create_task(_drain_output(child))
    await asyncio.wait({edge, ended}, return_when=asyncio.FIRST_COMPLETED)
    died = not edge.done()
    stop.set()
    await edge
    ended.cancel()
    if died:
        raise StartFailed("the agent runtime ended")


async def _drain_output(child: Process) -> None:
    """Read until the child ends, so that it never waits for a full pipe."""
    assert child.stdout is not None
    while output := await child.stdout.read(65_536):  # not by lines: one may be of any length
        sys.stdout.write(output.decode("utf-8", "replace"))
    await child.wait()


async def _stop(child: Process) -> None:
    if child.returncode is not None:
        return
    child.terminate()
    try:
        await asyncio.wait_for(child.wait(), _CHILD_STOP_SECONDS)
    except TimeoutError:
        child.kill()
        await child.wait()


if __name__ == "__main__":
    main()
