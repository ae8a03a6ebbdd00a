"""``python -m agent_runtime``: the process, from its configuration to its exit.

Reads the environment and the clock for the server, which reads neither. An agent is loaded by its name
and put together by its own module: the demo agents and the adapters read the environment there.

Exit codes: 0 after an orderly stop, 1 when it cannot listen or could not stop in time, 2 when its
configuration or one of its agents is unusable. Each failure is one line on stderr.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
import traceback
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

# Before grpc is imported: its C core would add lines of its own to ours.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from agent_runtime.agent import Agent, AgentLoadError, load_agents
from agent_runtime.config import Config, ConfigError
from agent_runtime.server import PortUnavailable, Server

STOP_SECONDS = 9.75
"""Cloud Run kills a process 10 s after SIGTERM; leaving by itself is better."""


def main() -> int:
    """Run the server until SIGTERM or SIGINT, and return the exit code."""
    # An agent's module is looked for where the process was started, as `python -m` does.
    try:
        config = Config.from_environment(os.environ)
        _set_up_logging(config)
        agents = load_agents(config.agents)
    except (ConfigError, AgentLoadError) as error:
        return _refuse(error, 2)
    try:
        stopped = _new_loop().run_until_complete(_serve(config, agents))
    except PortUnavailable as error:
        return _refuse(error, 1)
    return 0 if stopped else 1


async def _serve(config: Config, agents: Mapping[str, Agent]) -> bool:
    """Return whether the server came to its end in time."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = Server(config, agents, instance_id=uuid.uuid4().hex, wall_clock=time.time)
    address = await server.start()
    print(f"agent_runtime listening on {address}", flush=True)
    await stop.wait()
    stopping = asyncio.create_task(server.stop())
    await asyncio.wait({stopping}, timeout=STOP_SECONDS)
    if stopping.done():
        stopping.result()
    return stopping.done()


class PlainFormatter(logging.Formatter):
    """Formats a record as one line without content, as an exception's text may quote a prompt.

    Our own messages are fixed texts and are kept. Any other is cut to the first line of its template,
    without the arguments, and an exception to its type and the places that it passed; all of it is
    written only with ``AGENT_RUNTIME_TRACEBACKS=1``.
    """

    def __init__(self, *, tracebacks: bool = False) -> None:
        super().__init__()
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        ours = record.name.partition(".")[0] == "agent_runtime"
        message = record.getMessage() if ours else str(record.msg).partition("\n")[0][:200]
        line = f"{record.levelname} {record.name}: {message}"
        if record.exc_info and record.exc_info[0] is not None:
            line += f" ({record.exc_info[0].__name__} at {_places(record.exc_info[2])})"
            if self._tracebacks:
                line += "\n" + self.formatException(record.exc_info)
        return line


def _places(trace: TracebackType | None) -> str:
    """Return where an exception came from, innermost last: places in code, no values."""
    frames = traceback.extract_tb(trace, limit=-6)
    return ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)


def _set_up_logging(config: Config) -> None:
    """Send every log line to stderr; those of libraries from WARNING up, for they log addresses."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainFormatter(tracebacks=config.tracebacks))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("agent_runtime").setLevel(logging.INFO)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not on every platform
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _refuse(error: Exception, code: int) -> int:
    print(f"agent_runtime: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Whatever still runs is an agent or a tool that ignored its cancellation, or sits in a thread;
    # asyncio's own shutdown, and Python's, would wait for it for ever.
    os._exit(code)
