"""A correct client over real sockets: it keeps a cursor, obeys controls, and shows what it was told.

Knows nothing of edges but their ports: it may come back to another one each time. Every wait is
bounded by the HTTP client's patience.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

import h11

from edge.core.event import TERMINAL
from tests.support.history import Cleared, ClientLog, Heard, Rewound
from tests.support.http_client import PATIENCE_SECONDS, Exchange, exchange
from tests.support.processes import POLL_SECONDS
from tests.support.sse import Message

FOLLOW_SECONDS = 45.0
"""Longer than any take-over on a busy machine."""
NOBODY_THERE = frozenset({502, 503, 504})
"""What a proxy says when it reaches no edge."""
CONTROLS = frozenset({"caught_up", "status", "reauth", "reconnect"})

Moment = Callable[["Client"], bool]


def never(_client: Client) -> bool:
    """Stay until the stream ends."""
    return False


def saw(kind: str, count: int = 1) -> Moment:
    """Leave at the ``count``-th event of a type."""
    return lambda client: sum(e.type == kind for e in client.screen) >= count


def saw_events(count: int) -> Moment:
    """Leave once so many events have come over this one connection."""
    return lambda client: client.heard_here >= count


@dataclass(slots=True)
class Client:
    """One browser tab."""

    session_id: str
    cursor: str = ""
    """What it sends as ``Last-Event-ID``; empty for a page that has seen nothing."""
    log: ClientLog = field(default_factory=ClientLog)
    told: list[str] = field(default_factory=list)
    """The control events it was told, by type."""
    heard_at: list[float] = field(default_factory=list)
    """When each event of its log came, by the monotonic clock; in the order of the log."""
    heard_here: int = 0
    """Events of the newest connection."""
    raw: bytes = b""
    """Body of the newest connection."""
    tidy: bool = False
    """Whether the newest connection came to a clean end."""
    patience_seconds: float = PATIENCE_SECONDS
    """How long it waits for the next byte."""
    behind_proxy: bool = False
    """Something that is no edge may answer it."""
    refusals: list[int] = field(default_factory=list)
    """The statuses that told it that nobody is there."""
    _unread: deque[Message] = field(default_factory=deque)
    """What came with the event it left at, should it listen on."""

    def __post_init__(self) -> None:
        self.log.after = int(self.cursor.partition("-")[2] or 0)

    @property
    def screen(self) -> list[Heard]:
        return self.log.screen()

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.screen]

    @property
    def finished(self) -> bool:
        """Whether the newest thing it shows is the end of a turn."""
        screen = self.screen
        return bool(screen) and screen[-1].type in TERMINAL

    async def watch(self, port: int, leave: Moment = never, query: str = "") -> bool:
        """Connect once; return whether there was a stream. The socket is dropped when it leaves."""
        self.heard_here, self.raw, self.tidy = 0, b"", False
        self._unread.clear()
        headers = [("Accept", "text/event-stream")]
        headers += [("Last-Event-ID", self.cursor)] if self.cursor else []
        target = f"/v1/sessions/{self.session_id}/events{query}"
        async with exchange(port, "GET", target, headers) as stream:
            stream.patience_seconds = self.patience_seconds
            if self.behind_proxy and stream.status in NOBODY_THERE:
                self.refusals.append(stream.status)
                return False
            assert stream.status in (200, 204), stream.status
            if stream.status == 200:
                await self.listen(stream, leave)
            return stream.status == 200

    async def listen(self, stream: Exchange, leave: Moment = never) -> None:
        """Take in a stream until it is time to leave, or it ends."""
        while True:
            while self._unread:
                self.take(self._unread.popleft())
                if leave(self):
                    return
            if not (piece := await stream.data()):
                break
            self.raw += piece
            self._unread.extend(stream.parser.feed(piece))
        self.tidy = True

    def take(self, message: Message) -> None:
        """Obey one event."""
        if message.type in CONTROLS:
            self.told.append(message.type)
            return
        self.cursor = message.last_event_id
        if message.type == "rewind":
            self.told.append(message.type)
            self.log.entries.append(Rewound(message.json["to"]))
        elif message.type == "reset":
            self.told.append(message.type)
            self.log.entries.append(Cleared(message.json["first_seq"]))
        else:
            epoch, _, seq = message.last_event_id.partition("-")
            self.log.entries.append(Heard(int(epoch), int(seq), message.type, message.data))
            self.heard_at.append(monotonic())
            self.heard_here += 1

    async def follow(self, *ports: int, until: Moment | None = None) -> None:
        """Come back again and again, to one port after the other, until the turn's end is shown."""
        done = until or (lambda client: client.finished)
        deadline = monotonic() + FOLLOW_SECONDS
        tries = 0
        while not done(self):
            assert monotonic() < deadline, f"the turn never ended: {self.types} {self.told}"
            await self.try_watch(ports[tries % len(ports)], done)
            await asyncio.sleep(POLL_SECONDS)
            tries += 1

    async def try_watch(self, port: int, leave: Moment = never) -> bool:
        """Watch once and return whether there was a stream; a broken connection is no fault here."""
        try:
            return await self.watch(port, leave)
        except (OSError, h11.RemoteProtocolError, TimeoutError):
            return False


def frames_of(raw: bytes) -> list[bytes]:
    """Return the frames of journaled events in the bytes of a stream, as they were sent."""
    blocks = raw.replace(b": ping\n", b"").split(b"\n\n")
    return [b for b in blocks if b.startswith(b"id: ") and b.split(b"\n")[1] not in _NOT_JOURNALED]


_NOT_JOURNALED: Sequence[bytes] = (b"event: rewind", b"event: reset")
