"""The composition root: what it refuses to start without, and the order in which it stops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.auth.exceptions import DefaultCredentialsError
from hypercorn.config import Config as HypercornConfig

from edge.config import (
    LOOPBACK_NAMES,
    Config,
    FirestoreChoice,
    MemoryChoice,
    SqliteChoice,
    TokenIssuer,
)
from edge.core.errors import JournalUnavailable
from edge.journal.firestore import FirestoreJournal
from edge.journal.memory import MemoryJournal
from edge.main import _authenticator, _refuse_an_open_door, serve
from edge.process import StartFailed, Stopped, unless_stopped
from edge.sessions.viewer import Viewer
from edge.upstream.client import GrpcRuntime
from edge.web.server import BACKLOG, _settings, listen
from tests.support.http_client import PATIENCE_SECONDS, Exchange, ask, exchange, post
from tests.support.scripted_runtime import ScriptedRuntime, emit, hang, text

FIRESTORE = FirestoreChoice("demo", "(default)", "127.0.0.1:1")


def config(target: str = "127.0.0.1:1", **changes: object) -> Config:
    settings: dict[str, object] = {"port": 0, "journal": MemoryChoice(), "drain_seconds": 2.0}
    waits = {"runtime_target": target, "start_wait_seconds": 0.2}
    return Config(**{**settings, **waits, **changes})  # type: ignore[arg-type]


@asynccontextmanager
async def running(config: Config) -> AsyncIterator[tuple[int, asyncio.Event, asyncio.Task[None]]]:
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(config, stop, url.set_result))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            waiting: set[asyncio.Future[Any]] = {serving, url}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                await serving
        yield int(url.result().rpartition(":")[2]), stop, serving
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await serving


def noting(order: list[str], kind: type) -> Callable[..., object]:
    """Return ``kind.close`` that also notes that it was called."""
    close: Callable[..., object] = kind.close  # type: ignore[attr-defined]

    def noted(self: object) -> object:
        order.append(kind.__name__)
        return close(self)

    return noted


@asynccontextmanager
async def watching(port: int) -> AsyncIterator[Exchange]:
    session_id = (await post(port, "/v1/sessions", {})).json["session_id"]
    target = f"/v1/sessions/{session_id}"
    key = ("Idempotency-Key", "key-0123456789ab")
    assert (await post(port, f"{target}/turns", {"input": "Hi"}, key)).status == 202
    async with exchange(port, "GET", f"{target}/events", [("Last-Event-ID", "0-0")]) as stream:
        await stream.until("token")
        yield stream


async def test_an_edge_is_ready_when_it_says_so() -> None:
    async with ScriptedRuntime().serve() as target, running(config(target)) as (port, _, _):
        assert (await ask(port, "GET", "/readyz")).json == {"status": "ready"}


@pytest.mark.proves("T10", "S79")
async def test_at_the_stop_streams_end_resumably_before_anything_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    for kind in (Viewer, GrpcRuntime, MemoryJournal):
        monkeypatch.setattr(kind, "close", noting(order, kind))
    runtime = ScriptedRuntime()
    runtime.play(emit(text("m1", "Hello")), hang())
    async with runtime.serve() as target, running(config(target)) as (port, stop, serving):
        async with watching(port) as stream:
            stop.set()
            messages = await stream.messages()
            assert (messages[-1].type, messages[-1].json) == ("reconnect", {"reason": "rolling"})
            assert stream.ended
            assert stream.parser.retry_ms is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            await serving
    assert list(dict.fromkeys(order)) == ["Viewer", "GrpcRuntime", "MemoryJournal"]


async def test_an_edge_whose_runtime_is_gone_is_alive_and_not_ready() -> None:
    runtime = ScriptedRuntime()
    async with runtime.serve() as target:
        edge = running(config(target))
        port, _, _ = await edge.__aenter__()
    try:
        assert (await ask(port, "GET", "/healthz")).status == 200
        answer = await ask(port, "GET", "/readyz")
        assert (answer.status, answer.code) == (503, "runtime-unavailable")
    finally:
        await edge.__aexit__(None, None, None)


def missing_folder(folder: Path) -> Config:
    return config(journal=SqliteChoice(folder / "missing" / "journal.sqlite3"))


def not_a_database(folder: Path) -> Config:
    path = folder / "journal.sqlite3"
    path.write_bytes(b"not a database, but a text of some length\n" * 100)
    return config(journal=SqliteChoice(path))


def open_door(_folder: Path) -> Config:
    return config(host="0.0.0.0")


def foreign_address(_folder: Path) -> Config:
    return config(host="::ffff:127.0.0.1x")


def silent_firestore(_folder: Path) -> Config:
    return config(journal=FIRESTORE)


def silent_runtime(_folder: Path) -> Config:
    return config()


def open_door_in_production(_folder: Path) -> Config:
    return config(host="0.0.0.0", production=True, journal=FIRESTORE)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (missing_folder, "journal"),
        (not_a_database, "journal"),
        (open_door, "HOST: "),
        (open_door_in_production, "HOST: "),
        (foreign_address, "HOST: "),
        (silent_firestore, "journal"),
        (silent_runtime, "no agent runtime answers at 127.0.0.1:1"),
    ],
)
async def test_what_is_missing_is_said_in_one_line(
    broken: Callable[[Path], Config], says: str, tmp_path: Path
) -> None:
    with pytest.raises(StartFailed) as caught:
        async with running(broken(tmp_path)):
            pass
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_edge_that_asks_for_tokens_may_leave_loopback() -> None:
    tokens = TokenIssuer("https://issuer.example", "app", "https://issuer.example/keys")
    _refuse_an_open_door("0.0.0.0", _authenticator(tokens).open_to_all)


async def test_an_edge_waits_for_a_journal_that_is_away_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    async def check(journal: MemoryJournal) -> None:
        asked.append(journal)
        if len(asked) < 3:
            raise JournalUnavailable("DEADLINE_EXCEEDED")

    monkeypatch.setattr(MemoryJournal, "check", check)
    runtime = ScriptedRuntime()
    async with (
        runtime.serve() as target,
        running(config(target, start_wait_seconds=PATIENCE_SECONDS)) as (port, _, _),
    ):
        assert len(asked) == 3
        assert (await ask(port, "GET", "/healthz")).status == 200


async def test_missing_google_credentials_are_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(*_args: object, **_options: object) -> None:
        raise DefaultCredentialsError("a long text")  # type: ignore[no-untyped-call]

    monkeypatch.setattr(FirestoreJournal, "connect", connect)
    with pytest.raises(StartFailed, match="credentials"):
        async with running(config(journal=FIRESTORE)):
            pass


async def test_a_port_in_use_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            StartFailed, match=f"cannot listen on 127.0.0.1:{port}: Address already"
        ):
            async with running(config(port=port)):
                pass


async def test_a_runtime_that_cannot_resume_is_refused() -> None:
    runtime = ScriptedRuntime()
    runtime.info.resume_supported = False
    async with runtime.serve() as target:
        with pytest.raises(StartFailed, match="resume"):
            async with running(config(target)):
                pass


async def test_an_edge_that_is_told_to_stop_before_it_has_started_just_stops() -> None:
    stop = asyncio.Event()
    stop.set()
    with pytest.raises(Stopped):
        await serve(config(start_wait_seconds=60.0), stop, lambda url: None)


async def test_work_that_is_done_first_gives_its_result() -> None:
    async def work() -> int:
        return 7

    assert await unless_stopped(asyncio.Event(), work()) == 7


def test_the_socket_carries_what_long_streams_need() -> None:
    with listen("127.0.0.1", 0, stall_seconds=30) as listener:

        def option(level: int, name: int) -> int:
            return listener.getsockopt(level, name)

        assert option(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert 64 * 1024 <= option(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 128 * 1024
        tcp = socket.IPPROTO_TCP
        keepalive = [socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT]
        assert [option(tcp, name) for name in keepalive] == [10, 5, 3]
        assert option(tcp, socket.TCP_USER_TIMEOUT) == 32_000


@pytest.mark.proves("T08")
def test_hypercorn_is_set_up_for_long_streams() -> None:
    settings: HypercornConfig = _settings(listen("127.0.0.1", 0, stall_seconds=30))
    assert settings.read_timeout is None
    assert settings.max_requests is None
    assert settings.accesslog is None
    assert settings.backlog == BACKLOG
    assert settings.keep_alive_timeout > 600
    socket.socket(fileno=int(settings.bind[0].removeprefix("fd://"))).close()


def test_only_loopback_names_are_answered_for() -> None:
    assert sorted(LOOPBACK_NAMES) == ["127.0.0.1", "[::1]", "localhost"]
