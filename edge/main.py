"""The composition root: builds an edge from its configuration, serves it, and stops it in order.

With ``edge.local`` the only reader of ``os.environ``. Knows nothing of requests.

The order of stopping is the point: not ready, streams ended resumably and turns handed over, *then*
Hypercorn, then the registry's, the runtime's and the journal's own closing. Hypercorn by itself
would close the journal under running streams (3.11) or wait for them for ever (3.12 and later).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import random
import socket
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

from google.auth.exceptions import DefaultCredentialsError

from edge.config import (
    LOOPBACK_NAMES,
    Config,
    ConfigError,
    FirestoreChoice,
    JournalChoice,
    MemoryChoice,
    TokenIssuer,
)
from edge.core.control import decide_reconnect
from edge.core.errors import EdgeError, JournalUnavailable, RuntimeUnavailable
from edge.core.patience import WriterSettings
from edge.journal.memory import MemoryJournal
from edge.journal.sqlite import SqliteJournal
from edge.ports import Authenticator, Clock, Journal, Runtime
from edge.process import StartFailed, run_to_exit, unless_stopped
from edge.sessions.registry import Registry
from edge.sessions.settings import SessionSettings
from edge.telemetry import Metrics, set_up_logging
from edge.upstream.client import GrpcRuntime
from edge.upstream.requests import RuntimeOptions
from edge.web.app import build_app
from edge.web.auth import OpenLocalAuthenticator
from edge.web.parts import Framing, Parts, ThreadFormat, TurnFormat
from edge.web.server import listen, serve_http, url_of
from edge.wire import ag_ui, ag_ui_stream, ai_sdk, native

NATIVE = Framing(
    native.CONTENT_TYPE, native.control_frame, ping=native.PING, ping_event=native.PING_EVENT
)
AI_SDK = {
    "v6": TurnFormat(ai_sdk.DIALECT, ai_sdk.encoder(ai_sdk.V6)),
    "v7": TurnFormat(ai_sdk.DIALECT, ai_sdk.encoder(ai_sdk.V7)),
}
AG_UI = ThreadFormat(ag_ui_stream.DIALECT, ag_ui_stream.encoder, ag_ui.name_in_thread)
_log = logging.getLogger("edge")
_PROBE_SECONDS = 0.2
T = TypeVar("T")


def main() -> None:
    """Run one edge until SIGTERM or SIGINT; the command line of ``python -m edge``."""
    try:
        config = Config.from_environ(os.environ)
    except ConfigError as error:
        sys.stderr.write(f"edge: {error}\n")
        raise SystemExit(2) from None
    set_up_logging()
    run_to_exit("edge", lambda stop: serve(config, stop, announce))


def announce(url: str) -> None:
    """Print the one line that says that requests are answered now."""
    sys.stdout.write(f"edge listening on {url}\n")
    sys.stdout.flush()


async def serve(config: Config, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    """Serve until ``stop`` is set, then stop in order. ``ready`` is told the URL once.

    Raises:
        StartFailed: with one line that says what is missing.
        Stopped: ``stop`` was set before everything was there.
    """
    authenticator = _authenticator(config.tokens)
    _refuse_an_open_door(config.host, authenticator.open_to_all)
    metrics = Metrics()
    chance = random.SystemRandom()  # session ids are made of it, and must not be guessed
    with _listen(config) as listener:
        registry = await _open_registry(config, stop, metrics, chance)
        try:
            parts = Parts(
                registry=registry,
                authenticator=authenticator,
                telemetry=metrics,
                framing=NATIVE,
                ai_sdk=AI_SDK,
                ag_ui=AG_UI,
                reconnect=lambda reason: decide_reconnect(reason, chance),
                metrics=metrics.render,
                allowed_hosts=LOOPBACK_NAMES if authenticator.open_to_all else frozenset(),
            )

            async def drained() -> None:
                await stop.wait()
                await registry.drain(config.drain_seconds)

            app = build_app(parts)
            ready(url_of(listener))
            await serve_http(app, listener, drained)
        finally:
            await registry.close()


async def _open_registry(
    config: Config, stop: asyncio.Event, metrics: Metrics, chance: random.Random
) -> Registry:
    """Return a registry whose journal and runtime answer; closing it closes them."""
    clock = WallClock()
    journal = await _open_journal(config.journal, clock, config.start_wait_seconds)
    runtime = GrpcRuntime(config.runtime_target, _runtime_options(config), metrics)
    try:
        await unless_stopped(stop, _await_dependencies(journal, runtime, config))
    except BaseException:
        await runtime.close()
        await journal.close()
        raise
    writer = str(uuid.uuid4())
    _log.info(
        "the records that this process writes name it as their writer", extra={"writer": writer}
    )
    return Registry(
        journal=journal,
        runtime=runtime,
        clock=clock,
        telemetry=metrics,
        settings=_session_settings(config),
        encode=native.event_frame,
        chance=chance,
        writer=writer,
    )


class WallClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def _authenticator(tokens: TokenIssuer | None) -> Authenticator:
    if tokens is None:
        return OpenLocalAuthenticator()
    # Cryptography takes its time to be loaded: only who needs it pays.
    from edge.web.bearer import BearerAuthenticator
    from edge.web.signing_keys import SigningKeys, fetcher

    keys = SigningKeys(fetcher(tokens.jwks_url), time.monotonic)
    return BearerAuthenticator(tokens.issuer, tokens.audience, keys, WallClock())


def _refuse_an_open_door(host: str, open_to_all: bool) -> None:
    if open_to_all and not _is_loopback(host):
        raise StartFailed(
            "HOST: everybody is let in, so this edge may only listen on 127.0.0.1, ::1 or localhost"
            " (unless EDGE_AUTH_ISSUER and its kin say whose tokens are asked for)"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(config: Config) -> socket.socket:
    try:
        return listen(config.host, config.port, config.stall_seconds)
    except OSError as error:
        where = f"{config.host}:{config.port}"
        raise StartFailed(f"cannot listen on {where}: {error.strerror}") from None


async def _open_journal(choice: JournalChoice, clock: Clock, wait_seconds: float) -> Journal:
    try:
        match choice:
            case MemoryChoice():
                return MemoryJournal(clock)
            case FirestoreChoice(project, database, emulator_host):
                # Two thirds of the start-up time and half of the memory: only who needs it pays.
                from edge.journal.firestore import FirestoreJournal

                return FirestoreJournal.connect(
                    clock, project=project, database=database, emulator_host=emulator_host
                )
            case _:
                return await SqliteJournal.open(
                    choice.path, clock, open_timeout_seconds=wait_seconds
                )
    except JournalUnavailable as error:
        raise StartFailed(f"the journal cannot be opened: {error}") from None
    except DefaultCredentialsError:
        raise StartFailed(
            "the journal cannot be opened: there are no Google application default credentials"
        ) from None


def _runtime_options(config: Config) -> RuntimeOptions:
    return RuntimeOptions(
        checkpoint_mode=config.checkpoint_mode,
        hold_timeout_seconds=config.hold_timeout_seconds,
        # Several heartbeats fit into the silence after which an attempt counts as dead.
        heartbeat_seconds=min(10.0, config.runtime_idle_seconds / 4),
        idle_seconds=config.runtime_idle_seconds,
    )


def _session_settings(config: Config) -> SessionSettings:
    return SessionSettings(
        writer=WriterSettings(ttl_seconds=config.ttl_seconds),
        ping_seconds=config.ping_seconds,
        stall_seconds=config.stall_seconds,
        stream_life_seconds=config.stream_life_seconds,
        disconnect_grace_seconds=config.disconnect_grace_seconds,
        max_streams=config.max_streams,
    )


async def _await_dependencies(journal: Journal, runtime: Runtime, config: Config) -> None:
    """Wait for what an edge needs: it may start together with the edge, or be away for a moment."""
    give_up_at = asyncio.get_running_loop().time() + config.start_wait_seconds
    try:
        await _first_answer(journal.check, JournalUnavailable, give_up_at)
    except JournalUnavailable as error:
        raise StartFailed(f"the journal does not answer: {error}") from None
    try:
        info = await _first_answer(runtime.info, RuntimeUnavailable, give_up_at)
    except RuntimeUnavailable:
        raise StartFailed(f"no agent runtime answers at {config.runtime_target}") from None
    if not info.resume_supported:
        raise StartFailed(
            "the agent runtime cannot resume turns, so an edge cannot keep them whole"
        )
    if config.checkpoint_mode not in info.checkpoint_modes:
        raise StartFailed(f"the agent runtime cannot {config.checkpoint_mode} a tool at its gate")


async def _first_answer(
    ask: Callable[[], Awaitable[T]], silence: type[EdgeError], give_up_at: float
) -> T:
    """Ask until there is an answer, or time is up. Raises the last ``silence``."""
    while True:
        try:
            return await ask()
        except silence:
            if asyncio.get_running_loop().time() >= give_up_at:
                raise
            await asyncio.sleep(_PROBE_SECONDS)
