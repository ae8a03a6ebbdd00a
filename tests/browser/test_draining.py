"""The browser's own ``EventSource`` at an edge that drains: it comes back, for nothing but a 200 would let it."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.site import Site
from tests.support.scripted_runtime import completed, emit, finished

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]
LISTEN = """(session) => {
  const heard = [];
  const source = new EventSource(`/v1/sessions/${session}/events?until=follow`);
  for (const type of ["reconnect", "message", "done"]) {
    source.addEventListener(type, () => {
      if (heard.at(-1) !== type) heard.push(type);
      document.title = heard.join(", ");
    });
  }
}"""
"""Writes what it hears into the page's title, each run of equal words as one."""


@pytest.mark.proves("T45", "P-SSE-16")
async def test_it_asks_a_draining_edge_until_it_meets_one_that_serves(
    site: Site, page: Page
) -> None:
    site.runtime.play(emit(completed("m1", "One"), finished()))
    session_id = await site.edge.session()
    await site.edge.turn(session_id)
    await page.goto(site.url())
    site.edge.registry.draining = True
    await page.evaluate(LISTEN, session_id)
    await expect(page).to_have_title("reconnect")
    site.edge.registry.draining = False
    await expect(page).to_have_title("reconnect, message, done")
