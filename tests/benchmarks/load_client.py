"""The load client: opens turns, reads their streams with one epoll loop, and weighs other processes.

Runs as a process of its own and prints one line of JSON. Knows nothing of what an event says: it
counts blank lines. It reads the CPU time of the processes it is told about in the same moment as
its own counters, so that both are of the same window.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import select
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

Kind = Literal["edge", "recipe"]

START_SECONDS = 60.0
"""How long it may take until every turn streams."""

_READ_BYTES = 64 * 1024
_FLOWING_EVENTS = 5
"""More than what a stream begins with, so that the runtime is known to have been called."""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_HEADERS = "Host: 127.0.0.1\r\nAccept: text/event-stream\r\n"


@dataclass(frozen=True, slots=True)
class Window:
    """What happened between two moments."""

    seconds: float
    events: int
    bytes: int
    lost: int
    """Streams that ended: a run with any is void."""
    cpu_seconds: Mapping[str, float]
    rss_mb: Mapping[str, float]


class Refused(Exception):
    """A turn did not become a stream; the message is its status line."""


class Streams:
    """Open streams and what has come through them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._last: dict[int, bytes] = {}
        self._counts: dict[int, int] = {}
        self.events = 0
        self.bytes = 0
        self.lost = 0

    def open(self, request: bytes) -> None:
        """Send a request and wait for its answer to begin, so that a start is no burst.

        Raises:
            Refused: the answer is not a stream.
        """
        opened = socket.create_connection(("127.0.0.1", self._port), timeout=START_SECONDS)
        opened.sendall(request)
        head = opened.recv(_READ_BYTES)
        if not head.startswith(b"HTTP/1.1 200"):
            raise Refused(head.partition(b"\r\n")[0].decode())
        opened.setblocking(False)
        self._sockets[opened.fileno()] = opened
        self._last[opened.fileno()] = head[-1:]
        self._counts[opened.fileno()] = 0
        self._poll.register(opened.fileno(), select.EPOLLIN)

    def read(self, seconds: float) -> None:
        """Read whatever comes for a while."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for number, _ in self._poll.poll(left):
                self._read(number)

    def read_until_all_flow(self) -> None:
        """Read until every stream has brought events.

        Raises:
            TimeoutError: not all of them have within ``START_SECONDS``.
        """
        until = time.monotonic() + START_SECONDS
        while min(self._counts.values()) < _FLOWING_EVENTS:
            if time.monotonic() > until:
                still = sum(count < _FLOWING_EVENTS for count in self._counts.values())
                raise TimeoutError(f"{still} turns do not stream, {self.lost} of them have ended")
            self.read(0.1)

    def _read(self, number: int) -> None:
        data = self._sockets[number].recv(_READ_BYTES)
        self.bytes += len(data)
        # A blank line may come in two pieces.
        events = (self._last[number] + data).count(b"\n\n")
        self.events += events
        self._counts[number] += events
        self._last[number] = data[-1:]
        if not data:
            self.lost += 1
            self._poll.unregister(number)


def cpu_seconds(pid: int) -> float:
    """Return the user and system time that all threads of a process have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_turns(streams: Streams, kind: Kind, port: int, turns: int) -> None:
    """Start every turn; the answer of each is its stream."""
    if kind == "recipe":
        for number in range(turns):
            target = f"/turns/turn-{number:024d}"
            streams.open(f"GET {target} HTTP/1.1\r\n{_HEADERS}\r\n".encode())
        return
    body = '{"input":"go"}'
    for number, session_id in enumerate(_sessions(port, turns)):
        lines = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        key = f"Idempotency-Key: benchmark-{number:08d}\r\n"
        start = f"POST /v1/sessions/{session_id}/turns HTTP/1.1\r\n"
        streams.open(f"{start}{_HEADERS}{lines}{key}\r\n{body}".encode())


def _sessions(port: int, count: int) -> list[str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    session_ids = []
    for _ in range(count):
        connection.request("POST", "/v1/sessions", "{}", {"Content-Type": "application/json"})
        session_ids.append(str(json.load(connection.getresponse())["session_id"]))
    connection.close()
    return session_ids


def measure(streams: Streams, seconds: float, pids: Mapping[str, int]) -> Window:
    """Read for a while, and return what it took everybody."""
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    begun, events, received = time.monotonic(), streams.events, streams.bytes
    streams.read(seconds)
    return Window(
        seconds=time.monotonic() - begun,
        events=streams.events - events,
        bytes=streams.bytes - received,
        lost=streams.lost,
        cpu_seconds={name: cpu_seconds(pid) - before[name] for name, pid in pids.items()},
        rss_mb={name: rss_mb(pid) for name, pid in pids.items()},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure once and print the window."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=get_args(Kind), required=True)
    for name in ("port", "turns", "edge-pid", "runtime-pid"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("warm-up", "seconds"):
        parser.add_argument(f"--{name}", type=float, required=True)
    given = parser.parse_args(arguments)
    streams = Streams(given.port)
    try:
        open_turns(streams, given.kind, given.port, given.turns)
        streams.read_until_all_flow()
    except (Refused, TimeoutError) as error:
        raise SystemExit(str(error)) from None
    streams.read(given.warm_up)
    pids = {"edge": given.edge_pid, "runtime": given.runtime_pid, "client": os.getpid()}
    json.dump(asdict(measure(streams, given.seconds, pids)), sys.stdout)


if __name__ == "__main__":
    main()
