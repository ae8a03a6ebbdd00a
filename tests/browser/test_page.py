"""The chat page before a wire that can be cut: what it asks for, and that it shows everything once."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Route, expect

from edge.core.cursor import START, Cursor
from tests.browser.site import Cue, Site
from tests.browser.talk import answers, questions, say, status
from tests.support.scripted_runtime import completed, emit, finished, text

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]
WATCH = """() => {
  window.seen = [];
  const look = () => seen.push([...document.querySelectorAll(".bubble.user")].map((b) => b.textContent).join("|"));
  new MutationObserver(look).observe(document.getElementById("transcript"), { childList: true, subtree: true });
}"""
"""Keeps what the person's own words looked like after every change."""
FORBID_STORAGE = """Object.defineProperty(window, "sessionStorage", {
  get() { throw new DOMException("forbidden", "SecurityError"); },
})"""


async def lose_answer(route: Route) -> None:
    """Let a request reach the server, and its answer nobody."""
    await route.fetch()
    await route.abort()


@pytest.mark.proves("S16")
async def test_the_page_asks_for_what_follows_the_cursor_that_it_was_given(
    site: Site, page: Page
) -> None:
    begin, end = Cue(), Cue()
    rest = emit(completed("m1", "One two"), finished())
    site.runtime.play(begin.wait(), emit(text("m1", "One")), end.wait(), rest)
    session_id = await site.edge.session()
    await site.edge.turn(session_id)
    await page.goto(site.url(session_id))
    await site.opened(1)
    assert site.asked == site.given == [Cursor(1, 1)]
    begin.give()
    await expect(answers(page)).to_have_text(["One"])
    site.wire.cut()
    await site.opened(2)
    assert site.asked[1] == Cursor(1, 2)
    end.give()
    await expect(answers(page)).to_have_text(["One two"])
    await page.reload()
    await expect(answers(page)).to_have_text(["One two"])
    await site.opened(3)
    assert site.asked[2] == site.given[1] == Cursor(1, 4)


@pytest.mark.proves("S27")
async def test_events_that_are_offered_again_and_again_are_shown_once(
    site: Site, page: Page
) -> None:
    more, end = Cue(), Cue()
    told = emit(text("m1", "Only "), text("m1", "once"))
    rest = emit(text("m1", ", you"), text("m1", " know")), end.wait()
    last = emit(completed("m1", "Only once."), finished())
    site.runtime.play(told, more.wait(), *rest, last)
    site.runtime.play(emit(completed("m2", "Twice."), finished()))
    await page.goto(site.url())
    await say(page, "Hi")
    await expect(answers(page)).to_have_text(["Only once"])
    site.always_from = Cursor(1, 1)  # the turn's start would itself withdraw what was streaming
    for streams in (2, 3):
        site.wire.cut()
        await site.opened(streams)
    more.give()
    await expect(answers(page)).to_have_text(["Only once, you know"])
    site.always_from = START
    site.wire.cut()
    await site.opened(4)
    end.give()
    await expect(answers(page)).to_have_text(["Only once."])
    await say(page, "And again?")
    await expect(answers(page)).to_have_text(["Only once.", "Twice."])
    await expect(questions(page)).to_have_text(["Hi", "And again?"])


@pytest.mark.proves("S34")
async def test_a_connection_that_breaks_while_a_turn_starts_loses_none_of_its_messages(
    site: Site, page: Page
) -> None:
    site.runtime.play(emit(text("m1", "Here"), completed("m1", "Here I am"), finished()))
    site.cuts = 3  # after the first one the browser tries again by itself
    await page.goto(site.url())
    await expect(status(page)).to_have_text("Connected")
    await page.evaluate(WATCH)
    await say(page, "Are you there?")
    await expect(answers(page)).to_have_text(["Here I am"])
    await site.opened(2)
    assert set(await page.evaluate("seen")) == {"Are you there?"}
    await site.posted(site.cuts + 1)
    assert len(set(site.keys)) == 1
    assert len(site.runtime.requests) == 1


@pytest.mark.proves("S44")
async def test_a_message_whose_answer_was_lost_is_sent_again_after_a_reload_as_the_same_turn(
    site: Site, page: Page
) -> None:
    site.runtime.play(emit(completed("m1", "Here I am"), finished()))
    await page.goto(site.url())
    await page.route("**/turns", lose_answer)
    await say(page, "Are you there?")
    await site.posted(1)
    await page.reload()
    await site.posted(len(site.keys) + 1)  # by the page that was loaded again
    await page.unroute_all(behavior="wait")
    await expect(answers(page)).to_have_text(["Here I am"])
    await expect(questions(page)).to_have_text(["Are you there?"])
    assert len(set(site.keys)) == 1
    assert len(site.runtime.requests) == 1


async def test_a_browser_that_lets_the_page_store_nothing_can_chat_all_the_same(
    site: Site, page: Page
) -> None:
    site.runtime.play(emit(completed("m1", "Here I am"), finished()))
    await page.add_init_script(FORBID_STORAGE)
    await page.goto(site.url())
    await say(page, "Are you there?")
    await expect(answers(page)).to_have_text(["Here I am"])
    await expect(questions(page)).to_have_text(["Are you there?"])
