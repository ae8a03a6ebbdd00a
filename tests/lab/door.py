"""The one address of the lab: hands each request to the page's server, or through the network to a column's.

One origin for all, so that a browser sees no difference between the columns but their servers. Knows nothing of HTTP but
a request's head: its path says where it goes, and each connection carries one request.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Mapping

from tests.lab.network import Network

Port = Callable[[], int | None]
"""Says which port of this machine takes a new connection, if any does."""

_HEAD_END = b"\r\n\r\n"


class Door:
    """Listens, and joins each connection with the one to whom it belongs."""

    def __init__(self, columns: Mapping[str, Port], page: Port, network: Network) -> None:
        """``columns`` are known by the first part of the path, which their servers do not see."""
        self._columns = columns
        self._page = page
        self._network = network
        self._calm = Network(idle_seconds=3_600)
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, host: str, port: int) -> asyncio.Server:
        """Start listening. Raises ``OSError``."""
        return await asyncio.start_server(self._accept, host, port)

    async def close(self) -> None:
        """Drop every connection, and wait for what ran here."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await self._let_in(reader, writer)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # no request, or nobody to hand it to
        finally:
            writer.transport.abort()

    async def _let_in(self, reader: StreamReader, writer: StreamWriter) -> None:
        column, head = direct(await reader.readuntil(_HEAD_END), self._columns)
        port = (self._columns[column] if column else self._page)()
        if port is None:
            return
        server = await asyncio.open_connection("127.0.0.1", port)
        server[1].write(head)
        await (self._network if column else self._calm).join((reader, writer), server)


def direct(head: bytes, columns: Mapping[str, object]) -> tuple[str | None, bytes]:
    """Return which column a request is for, if any, and its head as that column's server gets it.

    Raises:
        ValueError: it is no head of a request.
    """
    first, *lines = head.removesuffix(_HEAD_END).split(b"\r\n")
    method, path, version = first.split(b" ")
    name, slash, rest = path.removeprefix(b"/").partition(b"/")
    column = name.decode("latin-1") if slash and name.decode("latin-1") in columns else None
    kept = [line for line in lines if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    target = b"/" + rest if column else path
    return column, b"\r\n".join(
        [b" ".join((method, target, version)), *kept, b"Connection: close", b"", b""]
    )
