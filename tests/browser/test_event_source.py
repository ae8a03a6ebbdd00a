"""The browser's own ``EventSource``, without our library: it comes back by itself, and stops when all is said."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from edge.core.cursor import Cursor
from tests.browser.site import Cue, Site
from tests.browser.talk import status
from tests.support.scripted_runtime import completed, emit, finished, text

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]
LISTEN = """(session) => {
  const heard = [];
  const source = new EventSource(`/v1/sessions/${session}/events?last_event_id=0-1`);
  const tell = (words) => (document.title = [...heard, words].join(", "));
  for (const type of ["token", "message", "done"]) {
    source.addEventListener(type, ({ lastEventId }) => {
      heard.push(`${type} ${lastEventId}`);
      tell("open");
    });
  }
  source.addEventListener("error", () => source.readyState === EventSource.CLOSED && tell("closed"));
}"""
"""Writes what it hears into the page's title, where a test can wait for it."""


@pytest.mark.proves("S30", "T42", "T47", "P-SSE-8")
async def test_it_resumes_by_its_last_id_and_is_told_when_nothing_is_left(
    site: Site, page: Page
) -> None:
    cue = Cue()
    site.runtime.play(emit(text("m1", "One")), cue.wait(), emit(completed("m1", "One"), finished()))
    await page.goto(site.url())  # for its origin only
    await expect(status(page)).to_have_text("Connected")
    session_id = await site.edge.session()
    await site.edge.turn(session_id)
    await page.evaluate(LISTEN, session_id)
    await expect(page).to_have_title("token 1-2, open")
    asked = len(site.asked)
    assert site.asked[-1] == Cursor(0, 1)  # where the page began, as the query says
    site.wire.cut()
    await site.opened(asked + 2)  # the page's own stream comes back, too
    assert Cursor(1, 2) in site.asked[asked:]  # where it was, as the header says
    cue.give()
    await expect(page).to_have_title("token 1-2, message 1-3, done 1-4, closed")
