"""The ASGI layer in front of Quart: refuses what no route should ever see.

Knows nothing of routes. Here is what is about the connection and not about a call: protocol version,
sizes, WebSocket, host and origin; and the end of the request, which only this layer is told for sure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from edge.web.problems import Problem, Refused, problem_of

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_HEADER_BYTES = 16 * 1024
MAX_URL_BYTES = 2 * 1024
MAX_BODY_BYTES = 64 * 1024
MAX_CHAT_BYTES = 4 * 1024 * 1024
"""Front-end kits send the whole conversation with every message, of which only the last is new."""
CHAT_PATHS = (b"/v1/ai-sdk/", b"/v1/ag-ui/")

EXITS = "edge.exits"
"""Key of the ASGI scope under which an ``ExitStack`` keeps what must run when the request is over."""
INCOMING = "edge.incoming"
"""Key of the ASGI scope under which the request's ``Incoming`` is found."""


class StreamCut(Exception):
    """Raised by a response's body: end it without HTTP's last chunk, so that no client takes it for whole."""


class Guard:
    """Wraps the application, and stands before it on every request."""

    def __init__(self, app: App, *, allowed_hosts: frozenset[str]) -> None:
        self._app = app
        self._allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refused = self._refuse(scope)
        if refused is not None:
            prefix = "websocket.http" if scope["type"] == "websocket" else "http"
            await _answer(problem_of(refused), prefix, send)
            return
        incoming = scope[INCOMING] = Incoming(receive, _limit_bytes(scope["raw_path"]))
        with ExitStack() as exits:
            scope[EXITS] = exits
            try:
                await self._app(scope, incoming, send)
            except* StreamCut:  # some releases of Quart raise it in a group
                pass  # Hypercorn closes a connection whose response was left unfinished

    def _refuse(self, scope: Scope) -> Refused | None:
        if scope.get("http_version", "1.1") not in ("1.0", "1.1"):
            return Refused("http-version-not-supported")
        if scope["type"] == "websocket":
            return Refused("upgrade-not-supported")
        if not scope["raw_path"].startswith(b"/"):
            return Refused("bad-request")  # an absolute URI could name another host, or credentials
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_URL_BYTES:
            return Refused("uri-too-long")
        headers = scope["headers"]
        if (
            sum(len(name) + len(value) + len(b": \r\n") for name, value in headers)
            > MAX_HEADER_BYTES
        ):
            return Refused("headers-too-large")
        hosts = _values(headers, b"host")
        if self._allowed_hosts and not all(_name(host) in self._allowed_hosts for host in hosts):
            return Refused("host-not-allowed")
        # No page of another origin has any business here yet: there is no CORS in this server.
        origins = [origin.partition("://")[2] for origin in _values(headers, b"origin")]
        if any(origin not in hosts for origin in origins):
            return Refused("origin-not-allowed")
        return None


class Incoming:
    """What the application hears of its client: the body up to its limit, and that the client has gone.

    Of a longer body the rest is dropped, and ``too_large`` tells: some releases of Quart look at the size
    only when the whole body has been gathered in memory.
    """

    def __init__(self, receive: Receive, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.too_large = False
        self._receive = receive
        self._size_bytes = 0
        self._given_up = False
        self._waiting: asyncio.Future[Mapping[str, Any]] | None = None

    async def __call__(self) -> Mapping[str, Any]:
        while True:
            message = await self._next()
            if message["type"] != "http.request":
                return message
            if self.too_large:
                continue
            self._size_bytes += len(message.get("body", b""))
            if self._size_bytes <= self.limit_bytes:
                return message
            self.too_large = True
            return {"type": "http.request", "body": b"", "more_body": False}

    def give_up(self) -> None:
        """Say that the client has gone: it has stopped reading.

        That ends a response that is stuck in a send, in every release of Quart, and with it the connection.
        To cancel the response's own task does so in some of them only.
        """
        self._given_up = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def _next(self) -> Mapping[str, Any]:
        self._waiting = asyncio.ensure_future(self._receive())
        try:
            return await self._waiting
        except asyncio.CancelledError:
            if not self._given_up:
                raise
            return {"type": "http.disconnect"}


def _limit_bytes(path: bytes) -> int:
    return MAX_CHAT_BYTES if path.startswith(CHAT_PATHS) else MAX_BODY_BYTES


def _values(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for name, value in headers if name.lower() == wanted]


def _name(host: str) -> str:
    """Return a Host header's name without its port; brackets of an IPv6 address stay."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


async def _answer(problem: Problem, prefix: str, send: Send) -> None:
    headers = {**problem.headers, "Content-Length": str(len(problem.body)), "Connection": "close"}
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": f"{prefix}.response.start", "status": problem.status, "headers": pairs})
    await send({"type": f"{prefix}.response.body", "body": problem.body, "more_body": False})
