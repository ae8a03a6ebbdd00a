"""Real reverse proxies for tests: Debian's nginx and HAProxy, with their defaults unless told otherwise.

Each is a group of processes with its files in a folder of its own; only that group is ever ended. Knows
nothing of what stands behind it. It is handed a socket that listens already, so no port is guessed and no
start is waited for.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Front:
    """A proxy as a test wants it."""

    program: str
    """``nginx`` or ``haproxy``."""
    settings: str = ""
    """Further lines for the one server that it is."""
    grpc: bool = False
    """It stands before a runtime, and speaks cleartext HTTP/2 on both sides."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a proxy's configuration must name."""

    front: Front
    folder: Path
    listener: socket.socket
    targets: Sequence[int]
    """Ports on this machine, taken in turn."""

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])


def nginx_configuration(place: Place) -> str:
    """Return Debian's settings, and one server. HTTP/1.0 to its targets and buffering are the default.

    An edge without authentication answers for the names of this machine alone, so it is told the real one.
    ``user`` is for root alone, whose temporary folders nobody else may enter; others it only warns.
    """
    servers = " ".join(f"server 127.0.0.1:{target};" for target in place.targets)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = " ".join(f"{kind}_temp_path {place.folder}/{kind};" for kind in kinds)
    http = "proxy_pass http://targets; proxy_set_header Host $host;"
    return f"""
daemon off;
user root;
worker_processes 1;
pid {place.folder}/nginx.pid;
error_log stderr;
events {{ }}
http {{
    access_log off;
    {folders}
    sendfile on;
    tcp_nopush on;
    gzip on;
    upstream targets {{ {servers} }}
    server {{
        listen 127.0.0.1:{place.port} {"http2" if place.front.grpc else ""};
        location / {{ {"grpc_pass grpc://targets;" if place.front.grpc else http} }}
        {place.front.settings}
    }}
}}
"""


def haproxy_configuration(place: Place) -> str:
    """Return Debian's time-outs, and one proxy. It does not look after its targets by default."""
    proto = "proto h2" if place.front.grpc else ""
    servers = [f"server at-{port} 127.0.0.1:{port} {proto}" for port in place.targets]
    lines = "\n    ".join(servers)
    return f"""
defaults
    mode http
    timeout connect 5000
    timeout client 50000
    timeout server 50000
    {place.front.settings}
listen front
    bind fd@{place.listener.fileno()} {proto}
    {lines}
"""


@dataclass(frozen=True, slots=True)
class Program:
    """How a proxy is configured and started."""

    configuration: Callable[[Place], str]
    arguments: Callable[[Place, Path], Sequence[str]]
    variables: Callable[[Place], Mapping[str, str]] = lambda _place: {}


PROGRAMS: Mapping[str, Program] = {
    "nginx": Program(
        nginx_configuration,
        # Without -e it would first ask for a log file of the system's.
        lambda place, file: ("-e", "stderr", "-p", str(place.folder), "-c", str(file)),
        # How a new nginx takes the sockets of an old one over.
        lambda place: {"NGINX": f"{place.listener.fileno()};"},
    ),
    "haproxy": Program(haproxy_configuration, lambda _place, file: ("-db", "-f", str(file))),
}


@contextmanager
def reverse_proxy(front: Front, folder: Path, *targets: int) -> Iterator[int]:
    """Run a proxy in front of ports, and yield where it listens. ``folder`` may hold others already."""
    program = shutil.which(front.program, path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if program is None:
        pytest.skip(f"NOT RUN: no {front.program} on this machine to put in front of edges")
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        own = folder / f"{front.program}-{listener.getsockname()[1]}"
        place = Place(front, own, listener, targets)
        process = _start(program, PROGRAMS[front.program], place)
        try:
            yield place.port
        finally:
            code = process.poll()
            if code is None:  # else its id may be somebody else's by now
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=STOP_SECONDS)
            # Said even if the test failed: it did because of this.
            assert code is None, (own / "proxy.log").read_text(errors="replace")


def _start(program: str, how: Program, place: Place) -> subprocess.Popen[bytes]:
    place.folder.mkdir()
    file = place.folder / "proxy.conf"
    file.write_text(how.configuration(place))
    with (place.folder / "proxy.log").open("wb") as log:
        return subprocess.Popen(
            [program, *how.arguments(place, file)],
            env={**os.environ, **how.variables(place)},
            pass_fds=[place.listener.fileno()],
            start_new_session=True,
            stdout=log,
            stderr=log,
        )
