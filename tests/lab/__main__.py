"""``python -m tests.lab``, or ``make lab``: puts the lab together, serves it on loopback, and takes everything down again.

Two edges on one journal and one runtime, two naive servers, and a network between them and the browser that can be broken.
Everything is kept in a folder of its own, which goes with the lab.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from edge.journal.sqlite import SqliteJournal
from edge.process import StartFailed, run_to_exit, unless_stopped
from edge.web.server import listen, serve_http
from tests.lab.control import build_app
from tests.lab.door import Door
from tests.lab.ledger import Ledger
from tests.lab.network import Network
from tests.lab.processes import Fleet, Program, together
from tests.lab.settings import Settings, SettingsError
from tests.lab.store import Store
from tests.lab.troubles import Troubles

STOP_SECONDS = 20.0
REPLICAS = 2
LEASE = {
    "EDGE_TTL_SECONDS": "5",
    "EDGE_HOLD_TIMEOUT_SECONDS": "1.9",
    "EDGE_START_WAIT_SECONDS": "30",
}
"""Shorter than by default, so that nobody waits long for a take-over."""


class WallClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def main() -> None:
    """Run the lab until SIGTERM or SIGINT."""
    try:
        settings = Settings.from_environ(os.environ)
    except SettingsError as error:
        sys.stderr.write(f"lab: {error}\n")
        raise SystemExit(2) from None
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EDGE_", "AGENT_RUNTIME_", "LAB_")) and name not in ("HOST", "PORT")
    }
    run_to_exit("lab", lambda stop: _run(settings, inherited, stop), STOP_SECONDS)


async def _run(settings: Settings, inherited: Mapping[str, str], stop: asyncio.Event) -> None:
    with TemporaryDirectory(prefix="unbroken-lab-") as name:
        async with AsyncExitStack() as stack:
            fleets = await unless_stopped(stop, _start(settings, inherited, Path(name), stack))
            await _serve(settings, fleets, Path(name), stop)


async def _start(
    settings: Settings, inherited: Mapping[str, str], folder: Path, stack: AsyncExitStack
) -> dict[str, Fleet]:
    """Start everything in the order in which it needs each other; ``stack`` takes it down."""
    common = {
        **inherited,
        "LAB_LEDGER": str(folder),
        "LAB_WORD_SECONDS": str(settings.word_seconds),
    }
    runtime = {
        "AGENT_RUNTIME_LISTEN": "127.0.0.1:0",
        "AGENT_RUNTIME_AGENTS": "tests.lab.agent:counter",
    }
    edge = {
        **LEASE,
        "PORT": "0",
        "EDGE_JOURNAL": f"sqlite:{folder / 'journal.sqlite3'}",
        "EDGE_PING_SECONDS": f"{settings.ping_seconds:.3f}",
    }

    def fleet(name: str, module: str, **variables: str) -> Fleet:
        made = Fleet(Program(name, module, {**common, **variables}, folder))
        stack.push_async_callback(made.close)
        return made

    runtimes = fleet("runtime", "agent_runtime", **runtime)
    await runtimes.start(1)
    edge["EDGE_RUNTIME_TARGET"] = f"127.0.0.1:{runtimes.port()}"
    fleets = {"durable": fleet("edge", "edge", **edge), "naive": fleet("naive", "tests.lab.naive")}
    await together(*(one.start(REPLICAS) for one in fleets.values()))
    return fleets


async def _serve(
    settings: Settings, fleets: Mapping[str, Fleet], folder: Path, stop: asyncio.Event
) -> None:
    network = Network(settings.idle_seconds)
    async with _opened_store(folder) as store:
        troubles = Troubles(
            network, fleets["durable"], fleets["naive"], store=store, ledger=Ledger(folder)
        )
        with listen("127.0.0.1", 0, stall_seconds=30.0) as page:
            page_port = page.getsockname()[1]
            ports = {name: fleet.port for name, fleet in fleets.items()}
            door = Door(ports, lambda: page_port, network)
            server = await _open(door, settings)
            keeping = [asyncio.create_task(fleet.keep()) for fleet in fleets.values()]
            try:
                await serve_http(build_app(troubles, settings), page, _until(stop))
            finally:
                server.close()
                for task in keeping:
                    task.cancel()
                await door.close()
                await asyncio.gather(*keeping, return_exceptions=True)


@asynccontextmanager
async def _opened_store(folder: Path) -> AsyncIterator[Store]:
    path = folder / "journal.sqlite3"
    journal = await SqliteJournal.open(path, WallClock())
    store = Store(path, journal, asyncio.get_running_loop().time)
    try:
        yield store
    finally:
        store.give_back()
        await journal.close()


async def _open(door: Door, settings: Settings) -> asyncio.Server:
    try:
        server = await door.open(settings.host, settings.port)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise StartFailed(f"cannot listen on {where}: {error.strerror}") from None
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"lab listening on http://{settings.host}:{port}\n")
    sys.stdout.flush()
    return server


def _until(stop: asyncio.Event) -> Callable[[], Awaitable[None]]:
    async def stopped() -> None:
        await stop.wait()

    return stopped


if __name__ == "__main__":
    main()
