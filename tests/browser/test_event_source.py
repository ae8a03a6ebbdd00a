"""The browser's own EventSource: it comes back from an edge that drains, and stops when nothing is left."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from tests.browser.site import PATIENCE_SECONDS, Cue, Site
from tests.support.scripted_runtime import completed, emit, finished, text

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]
WATCH = """(url) => {
  window.told = [];
  window.source = new EventSource(url);
  for (const type of ["turn_start", "token", "message", "done", "rewind", "reset", "reconnect"])
    source.addEventListener(type, () => told.push(type));
}"""


async def until(page: Page, what: str) -> None:
    await page.wait_for_function(what, timeout=PATIENCE_SECONDS * 1_000)


@pytest.mark.proves("T45", "T47", "P-SSE-7", "P-SSE-8", "P-SSE-16")
async def test_it_comes_back_from_a_draining_edge_and_stops_at_the_end(
    site: Site, page: Page
) -> None:
    end = Cue()
    site.runtime.play(emit(text("m1", "One")), end.wait(), emit(completed("m1", "One"), finished()))
    session_id = await site.edge.session()
    await site.edge.turn(session_id)
    await page.goto(site.url().replace("#", "healthz"))
    site.edge.registry.draining = True
    await page.evaluate(WATCH, f"/v1/sessions/{session_id}/events")
    await until(page, "told.length === 1")
    site.edge.registry.draining = False
    await until(page, "told.includes('token')")
    site.wire.cut()
    await site.opened(3)
    end.give()
    await until(page, "source.readyState === EventSource.CLOSED")
    told = await page.evaluate("told")
    assert told == ["reconnect", "turn_start", "token", "message", "done"]
