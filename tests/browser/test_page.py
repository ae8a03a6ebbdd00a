"""The chat page itself in Chromium, with its native EventSource, before a real edge and a wire that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from edge.core.cursor import START, Cursor
from edge.core.requests import TurnRequest, TurnStarted, Until
from edge.sessions.viewer import Viewer
from tests.support.chromium import Chromium, Page, chromium, find_chromium
from tests.support.live_edge import LiveEdge, live_edge
from tests.support.scripted_runtime import (
    ScriptedAttempt,
    ScriptedRuntime,
    Step,
    completed,
    emit,
    finished,
    text,
)
from tests.support.tcp_proxy import TcpProxy

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(240)]
PATIENCE_SECONDS = 60.0
ANSWER = (
    "[...document.querySelectorAll('.bubble.agent')].map((bubble) => bubble.textContent).join('|')"
)
QUESTIONS = "[...document.querySelectorAll('.bubble.user')].map((b) => b.textContent).join('|')"
WATCH = (
    "var seen = []; new MutationObserver(() => seen.push(" + QUESTIONS + "))"
    ".observe(document.getElementById('transcript'), { childList: true, subtree: true })"
)
"""Keeps what the person's own words looked like after every change."""
CONNECTED = "document.getElementById('connection').dataset.state === 'connected'"


@dataclass
class Site:
    """An edge behind a wire, and what browsers asked of it."""

    edge: LiveEdge
    wire: TcpProxy
    browser: Chromium
    asked: list[Cursor | None] = field(default_factory=list)
    """The cursor of each stream that was opened."""
    keys: list[str] = field(default_factory=list)
    """The key of each request for a turn."""
    given: list[Cursor] = field(default_factory=list)
    """The cursor of each snapshot."""
    cuts: int = 0
    """At how many requests for a turn the wire is cut."""
    always_from: Cursor | None = None
    """Where every stream begins, whatever was asked for."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def page(self, session_id: str = "") -> AsyncIterator[Page]:
        async with self.browser.page(f"http://127.0.0.1:{self.wire.port}/#{session_id}") as opened:
            yield opened

    def listen_in(self) -> None:
        """Write down what the edge is asked for."""
        registry = self.edge.registry
        attach, start_turn, snapshot = registry.attach, registry.start_turn, registry.snapshot

        async def attached(
            uid: str, session_id: str, cursor: Cursor | None, until: Until
        ) -> Viewer | None:
            self.asked.append(cursor)
            self._news.set()
            return await attach(uid, session_id, self.always_from or cursor, until)

        async def started(uid: str, session_id: str, request: TurnRequest) -> TurnStarted:
            self.keys.append(request.idempotency_key)
            if len(self.keys) <= self.cuts:
                self.wire.cut()
            return await start_turn(uid, session_id, request)

        async def drawn(uid: str, session_id: str) -> dict[str, Any]:
            made = await snapshot(uid, session_id)
            self.given.append(Cursor.parse(made["cursor"]))
            return made

        registry.attach = attached  # type: ignore[method-assign]
        registry.start_turn = started  # type: ignore[method-assign]
        registry.snapshot = drawn  # type: ignore[method-assign]

    async def opened(self, streams: int) -> None:
        """Wait until so many streams were asked for."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.asked) < streams:
                self._news.clear()
                await self._news.wait()


class Cue:
    """Lets a test say when an agent goes on."""

    def __init__(self) -> None:
        self._given = asyncio.Event()

    def give(self) -> None:
        self._given.set()

    def wait(self) -> Step:
        async def step(_: ScriptedAttempt) -> None:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._given.wait()

        return step


@pytest.fixture
def runtime() -> ScriptedRuntime:
    return ScriptedRuntime()


@pytest_asyncio.fixture
async def site(runtime: ScriptedRuntime, tmp_path: Path) -> AsyncIterator[Site]:
    path = find_chromium()
    if path is None:
        pytest.skip("NOT RUN: no Chromium on this machine to show the page in")
    async with AsyncExitStack() as stack:
        edge = await stack.enter_async_context(live_edge(runtime))
        wire = TcpProxy(edge.port)
        await wire.open()
        stack.push_async_callback(wire.close)
        browser = await stack.enter_async_context(chromium(path, tmp_path / "profile"))
        made = Site(edge, wire, browser)
        made.listen_in()
        yield made


async def say(page: Page, words: str) -> None:
    await page.until(CONNECTED)
    await page.run(f"document.getElementById('input').value = '{words}'")
    await page.run("document.getElementById('composer').requestSubmit()")


@pytest.mark.proves("S16")
async def test_the_page_asks_for_what_follows_the_cursor_that_it_was_given(
    site: Site, runtime: ScriptedRuntime
) -> None:
    begin, end = Cue(), Cue()
    rest = emit(completed("m1", "One two"), finished())
    runtime.play(begin.wait(), emit(text("m1", "One")), end.wait(), rest)
    session_id = await site.edge.session()
    await site.edge.turn(session_id)
    async with site.page(session_id) as page:
        await site.opened(1)
        assert site.asked == site.given == [Cursor(1, 1)]  # the snapshot's, in the query
        begin.give()
        await page.until(f"{ANSWER} === 'One'")
        site.wire.cut()
        await site.opened(2)
        assert site.asked[1] == Cursor(1, 2)  # the newest id, in a header: the query is as it was
        end.give()
        await page.until(f"{ANSWER} === 'One two'")
    async with site.page(session_id) as page:
        await page.until(f"{ANSWER} === 'One two'")
        await site.opened(3)
        assert site.asked[2] == site.given[1] == Cursor(1, 4)


@pytest.mark.proves("S27")
async def test_events_that_are_offered_again_and_again_are_shown_once(
    site: Site, runtime: ScriptedRuntime
) -> None:
    more, end = Cue(), Cue()
    told = emit(text("m1", "Only "), text("m1", "once"))
    rest = emit(text("m1", ", you"), text("m1", " know")), end.wait()
    runtime.play(told, more.wait(), *rest, emit(completed("m1", "Only once."), finished()))
    runtime.play(emit(completed("m2", "Twice."), finished()))
    async with site.page() as page:
        await say(page, "Hi")
        await page.until(f"{ANSWER} === 'Only once'")
        site.always_from = Cursor(1, 1)  # the turn's start would itself withdraw what was streaming
        for streams in (2, 3):
            site.wire.cut()
            await site.opened(streams)
        more.give()
        await page.until(f"{ANSWER} === 'Only once, you know'")
        site.always_from = START
        site.wire.cut()
        await site.opened(4)
        end.give()
        await page.until(f"{ANSWER} === 'Only once.'")
        await say(page, "And again?")
        await page.until(f"{ANSWER} === 'Only once.|Twice.'")
        assert await page.run(QUESTIONS) == "Hi|And again?"


@pytest.mark.proves("S34")
async def test_a_connection_that_breaks_while_a_turn_starts_loses_none_of_its_messages(
    site: Site, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(text("m1", "Here"), completed("m1", "Here I am"), finished()))
    site.cuts = 3  # after the first one the browser tries again by itself
    async with site.page() as page:
        await page.until(CONNECTED)
        await page.run(WATCH)
        await say(page, "Are you there?")
        await page.until(f"{ANSWER} === 'Here I am'")
        await site.opened(2)
        assert set(await page.run("seen")) == {"Are you there?"}
        assert len(site.keys) > site.cuts
        assert len(set(site.keys)) == 1
        assert len(runtime.requests) == 1
