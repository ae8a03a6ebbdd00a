"""The client library against a real edge that asks for tokens, when its own expires amid an answer (CASES T50)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge.main import WallClock
from tests.edge.static.pages import page
from tests.support.http_client import ask
from tests.support.issuer import Issuer, ends_in, token
from tests.support.live_edge import LiveEdge, live_edge
from tests.support.scripted_runtime import (
    ScriptedRuntime,
    completed,
    emit,
    finished,
    hang,
    text,
    wait_for,
)

pytestmark = [
    pytest.mark.realtime,  # a token is believed for seconds at least
    pytest.mark.timeout(120),
    pytest.mark.proves("T50", "S82", "P-SSE-21"),
]
PATIENCE_SECONDS = 60.0
"""Longer than node takes to start on a busy machine."""

State = dict[str, Any]


async def refusals(edge: LiveEdge) -> int:
    lines = (await ask(edge.port, "GET", "/metrics")).body.decode().splitlines()
    (line,) = [line for line in lines if line.startswith("unbroken_http_refusals_total ")]
    return int(line.rpartition(" ")[2])


async def told(
    folder: Path, runtime: ScriptedRuntime, issuer: Issuer, until: Callable[[State], bool]
) -> tuple[list[State], int]:
    """Run a page until it says so; return what it said, and how often the edge refused something."""
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        live_edge(runtime, authenticator=issuer.authenticator(), clock=WallClock()) as edge,
        page(folder, "user.mjs", f"http://127.0.0.1:{edge.port}", issuer.token_url) as said,
    ):
        heard: list[State] = []
        async for news in said:
            heard.append(news)
            if until(news):
                break
        assert "cancelled" not in runtime.left  # whatever became of the token, the turn went on
        return heard, await refusals(edge)


async def test_a_page_with_a_fresh_token_goes_over_to_it_in_time_and_misses_nothing(
    tmp_path: Path,
) -> None:
    over = asyncio.Event()
    lives = iter([30.0])

    def heard_all(news: State) -> bool:
        if news["asked"] == [False, True] and news["state"] == "live":
            over.set()
        return bool(news["texts"] == ["Hello"])

    runtime = ScriptedRuntime()
    rest = emit(text("m1", "lo"), completed("m1", "Hello"), finished())
    runtime.play(emit(text("m1", "Hel")), wait_for(over), rest)
    async with Issuer().serve() as issuer:
        issuer.make = lambda: token(exp=ends_in(next(lives, 3_600.0)))
        heard, refused = await told(tmp_path, runtime, issuer, heard_all)
    assert refused == 0
    assert heard[-1]["asked"] == [False, True]
    cursors = [int(news["cursor"].partition("-")[2]) for news in heard]
    assert cursors == sorted(cursors)
    assert "refused" not in {news["state"] for news in heard}


async def test_a_page_whose_token_stays_stale_is_refused_with_the_reason_and_asks_no_more(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime()
    runtime.play(emit(text("m1", "Hel")), hang())
    made: list[str] = []

    def stale() -> str:
        made.append(made[0] if made else token(exp=ends_in(4.0)))
        return made[0]

    async with Issuer().serve() as issuer:
        issuer.make = stale
        heard, refused = await told(
            tmp_path, runtime, issuer, lambda news: news["state"] == "refused"
        )
    assert heard[-1]["code"] == "token-expired"
    assert heard[-1]["texts"] == ["Hel"]
    # At the start, a minute before the end, and at the end: no further one, and no further try.
    assert heard[-1]["asked"] == [False, True, True]
    assert refused == 2
