"""Serves the application over HTTP/1.1: the listening socket and Hypercorn, set up for long streams.

Knows nothing of sessions. Reasons stand beside the settings; the faults they answer are Hypercorn's
and TCP's, and were seen.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

from hypercorn.asyncio import run as hypercorn_run
from hypercorn.asyncio import serve
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.config import Config as HypercornConfig
from hypercorn.events import Event, Updated
from quart import Quart

BACKLOG = 4096
"""After a deploy thousands of browsers come back within seconds; Hypercorn's default is 100."""

GRACE_SECONDS = 1.5
"""For short requests that are under way; streams were ended before."""

_SEND_BUFFER_BYTES = 64 * 1024
"""The kernel doubles it. Left alone it takes megabytes for a client that has stopped reading."""

_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""A laptop whose lid was closed is noticed after 25 s. Names differ by platform."""

_log = logging.getLogger("hypercorn")


def listen(host: str, port: int, stall_seconds: float) -> socket.socket:
    """Return a bound, listening socket whose connections carry our options.

    Raises:
        OSError: the address is in use, or not ours.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            _set_tcp_option(listener, name, value)
        # Gives up on bytes that a client does not take: the only way to end a connection whose
        # client has stopped reading, because Hypercorn waits until they are sent.
        # A little later than the viewer's own patience, which counts and says what happened.
        _set_tcp_option(listener, "TCP_USER_TIMEOUT", int((stall_seconds + 2.0) * 1000))
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    """Return where the socket answers."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve_http(
    app: Quart, listener: socket.socket, drained: Callable[[], Awaitable[None]]
) -> None:
    """Serve until ``drained`` returns, then close what is idle and give the rest ``GRACE_SECONDS``.

    From Python 3.12 on Hypercorn waits for every open connection without a limit; so this returns
    without it when one is left, and the process leaves without asking it again.
    """
    asyncio.get_running_loop().set_exception_handler(_keep_quiet_about_lost_connections)
    vars(hypercorn_run)["TCPServer"] = PromptConnection
    draining = asyncio.create_task(_awaited(drained))

    async def trigger() -> None:
        await asyncio.wait({draining})

    server = asyncio.create_task(
        serve(cast(Any, app), _settings(listener), shutdown_trigger=trigger)
    )
    try:
        await asyncio.wait({server, draining}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({server}, timeout=GRACE_SECONDS + 0.5)
        if server.done():
            server.result()
        else:
            _log.warning("a connection was still open at the end")
    finally:
        server.cancel()
        draining.cancel()


class PromptConnection(TCPServer):
    """Hypercorn's connection, but one that ends when its client has gone.

    Hypercorn 0.18 lets a connection's idle timer run on after its client closed it, so that each one cost a
    descriptor for the whole keep-alive time: at ten a second an edge was deaf within minutes.
    """

    _left = False

    async def _read_data(self) -> None:
        await super()._read_data()
        self._left = True
        await self.idle_task.stop()

    async def protocol_send(self, event: Event) -> None:
        # A response that ends after its client left must not start the timer again.
        if not (self._left and isinstance(event, Updated)):
            await super().protocol_send(event)


def _keep_quiet_about_lost_connections(
    loop: asyncio.AbstractEventLoop, context: dict[str, Any]
) -> None:
    """Drop what Hypercorn leaves unhandled when the kernel gives a connection up: it is no fault."""
    if not _is_lost_connection(context.get("exception")):
        loop.default_exception_handler(context)


def _is_lost_connection(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_lost_connection(one) for one in error.exceptions)
    # Python 3.11 reports each connection that Hypercorn ends when its grace is over.
    if isinstance(error, asyncio.CancelledError):
        return True
    # No descriptors left is the one such error that an operator must hear of.
    return isinstance(error, OSError) and error.errno not in (errno.EMFILE, errno.ENFILE)


async def _awaited(function: Callable[[], Awaitable[None]]) -> None:
    await function()


def _settings(listener: socket.socket) -> HypercornConfig:
    settings = HypercornConfig()
    settings.bind = [f"fd://{listener.detach()}"]
    settings.backlog = BACKLOG
    settings.alpn_protocols = ["http/1.1"]
    settings.accesslog = None  # its format holds the query string
    settings.errorlog = _log
    settings.include_server_header = False
    settings.graceful_timeout = GRACE_SECONDS
    settings.keep_alive_timeout = 620  # longer than the load balancer's, or it meets closed sockets
    settings.h11_max_incomplete_size = 32 * 1024  # above our own limit, which answers in words
    return settings


def _set_tcp_option(listener: socket.socket, name: str, value: int) -> None:
    option = getattr(socket, name, None)
    if option is not None:
        listener.setsockopt(socket.IPPROTO_TCP, option, value)
