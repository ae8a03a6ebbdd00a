"""A small HTTP/1.1 client for tests that must see bytes, and send what a library would not.

Knows nothing of the edge. Every wait is bounded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import h11

from tests.support.sse import EventStreamParser, Message

PATIENCE_SECONDS = 10.0
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The last part of a problem's type."""
        assert self.headers["content-type"] == "application/problem+json", self
        return str(self.json["type"]).removeprefix("urn:unbroken:problem:")


@dataclass(slots=True)
class Exchange:
    """One connection with one request on it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    parser: EventStreamParser = field(default_factory=EventStreamParser)
    ended: bool = False
    """The response came to a clean end."""
    patience_seconds: float = PATIENCE_SECONDS
    """How long the next byte may take."""
    _http: h11.Connection = field(default_factory=lambda: h11.Connection(h11.CLIENT))
    _messages: list[Message] = field(default_factory=list)

    async def head(self) -> None:
        """Read the status and headers."""
        while not isinstance(event := await self._event(), h11.Response):
            assert isinstance(event, h11.InformationalResponse), event
        self.status = event.status_code
        self.headers = {name.decode(): value.decode() for name, value in event.headers}

    async def data(self) -> bytes:
        """Return the next bytes of the body; empty at its clean end.

        Raises:
            h11.RemoteProtocolError, ConnectionError: the connection broke before the end.
        """
        event = await self._event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        self.ended = isinstance(event, h11.EndOfMessage)
        return b""

    async def body(self) -> bytes:
        """Return the whole body."""
        pieces = []
        while piece := await self.data():
            pieces.append(piece)
        return b"".join(pieces)

    async def message(self) -> Message:
        """Return the next server-sent event. Raises ``EOFError`` at the clean end."""
        while not self._messages:
            piece = await self.data()
            if not piece:
                raise EOFError
            self._messages += self.parser.feed(piece)
        return self._messages.pop(0)

    async def messages(self) -> list[Message]:
        """Return all events up to the clean end."""
        messages = []
        while True:
            try:
                messages.append(await self.message())
            except EOFError:
                return messages

    async def until(self, kind: str) -> list[Message]:
        """Return the events up to the first of a type."""
        messages = [await self.message()]
        while messages[-1].type != kind:
            messages.append(await self.message())
        return messages

    async def _event(self) -> h11.Event:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            async with asyncio.timeout(self.patience_seconds):
                self._http.receive_data(await self.reader.read(65_536))
        assert not isinstance(event, type), event
        return event


@asynccontextmanager
async def exchange(
    port: int, method: str, target: str, headers: Headers = (), body: bytes = b""
) -> AsyncIterator[Exchange]:
    """Send a request, read the response's head, and close the connection at the end."""
    lines = [*headers]
    if "host" not in {name.lower() for name, _ in headers}:
        lines.append(("Host", f"127.0.0.1:{port}"))
    if body:
        lines.append(("Content-Length", str(len(body))))
    head = "".join(f"{name}: {value}\r\n" for name, value in lines)
    raw = f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body
    async with connection(port, raw, method) as opened:
        await opened.head()
        yield opened


@asynccontextmanager
async def connection(port: int, raw: bytes, method: str = "GET") -> AsyncIterator[Exchange]:
    """Send bytes as they are; ``method`` only tells the parser what to expect."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    opened = Exchange(reader, writer)
    # The parser must know that a request was sent before it reads a response.
    opened._http.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
    opened._http.send(h11.EndOfMessage())
    writer.write(raw)
    try:
        yield opened
    finally:
        writer.transport.abort()


async def ask(
    port: int, method: str, target: str, headers: Headers = (), body: bytes = b""
) -> Answer:
    """Return the whole response to a request."""
    async with exchange(port, method, target, headers, body) as opened:
        return Answer(opened.status, opened.headers, await opened.body())


async def ask_raw(port: int, raw: bytes, method: str = "GET") -> Answer:
    """Return the whole response to bytes."""
    async with connection(port, raw, method) as opened:
        await opened.head()
        return Answer(opened.status, opened.headers, await opened.body())


async def post(port: int, target: str, value: object, *headers: tuple[str, str]) -> Answer:
    """Post JSON."""
    lines = (("Content-Type", "application/json"), *headers)
    return await ask(port, "POST", target, lines, json.dumps(value).encode())
