"""How a process of the edge runs and leaves: signals, one line for a failed start, and time to stop.

Knows nothing of what is run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
Program = Callable[[asyncio.Event], Coroutine[Any, Any, None]]

STOP_SECONDS = 9.5
"""Cloud Run kills a process 10 s after SIGTERM; leaving by itself is better."""


class StartFailed(Exception):
    """Something that the process needs is not there; the message is one line for a person."""


class Stopped(Exception):
    """The process was told to stop before it had started; nothing is wrong."""


def run_to_exit(name: str, program: Program, stop_seconds: float = STOP_SECONDS) -> NoReturn:
    """Run ``program`` until it returns, and leave the process.

    The program is handed an event that SIGTERM, SIGINT and SIGHUP (a closed terminal) set, and has ``stop_seconds`` from then.
    """
    loop = _new_loop()
    try:
        code = 0 if loop.run_until_complete(_run(program, stop_seconds)) else 1
    except Stopped:
        code = 0
    except StartFailed as error:
        sys.stderr.write(f"{name}: {error}\n")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # What must be released has been. Anything else that still runs is a connection whose client
    # reads nothing; asyncio's own shutdown would wait for its last bytes for ever.
    os._exit(code)


async def unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Do ``work`` and return its result.

    Raises:
        Stopped: ``stop`` was set first; the work is cancelled and has ended.
    """
    working = asyncio.create_task(work)
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.wait({working})
    raise Stopped


async def _run(program: Program, stop_seconds: float) -> bool:
    """Return whether the program came to its end in time."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    running = asyncio.create_task(program(stop))
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait({running}, timeout=stop_seconds)
    if running.done():
        running.result()
    return running.done()


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not on every platform
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
