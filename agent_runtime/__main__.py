"""``python -m agent_runtime``: the process. The only reader of the environment and of the clock.

Exit codes: 0 after an orderly stop, 1 when it cannot listen, 2 when its configuration or one of its
agents is unusable. Each failure is one line on stderr.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable

# Before grpc is imported: its C core would add lines of its own to ours.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from agent_runtime.agent import AgentLoadError, load_agents
from agent_runtime.config import Config, ConfigError
from agent_runtime.server import PortUnavailable, Server

Loops = Callable[[], asyncio.AbstractEventLoop]


def main() -> int:
    """Run the server until SIGTERM or SIGINT, and return the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    # An agent's module is looked for where the process was started, as `python -m` does.
    try:
        config = Config.from_environment(os.environ)
        agents = load_agents(config.agents)
    except (ConfigError, AgentLoadError) as error:
        return _refuse(error, 2)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        server_of = lambda: Server(  # noqa: E731
            config, agents, instance_id=uuid.uuid4().hex, wall_clock=time.time
        )
        try:
            runner.run(_serve(server_of))
        except PortUnavailable as error:
            return _refuse(error, 1)
    return 0


async def _serve(make_server: Callable[[], Server]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = make_server()
    address = await server.start()
    print(f"agent_runtime listening on {address}", flush=True)
    await stopped.wait()
    if not await server.stop():
        # The runner would wait for ever for a tool that ignores its cancellation.
        logging.getLogger(__name__).warning("left running: a tool ignored its cancellation")
        os._exit(0)


def _loop_factory() -> Loops | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _refuse(error: Exception, code: int) -> int:
    print(f"agent_runtime: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
