"""The chat page as it is opened and left: a server that is away at first, and the back button."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Route, expect

from edge.core.cursor import Cursor
from tests.browser.site import Cue, Site
from tests.browser.talk import answers, say, status
from tests.support.chromium import chromium, person
from tests.support.scripted_runtime import completed, emit, finished, text

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]


BEFORE_IT_GIVES_UP_MS = 20_000
"""The page lets go of a request that nobody answers after 25 s."""


async def ignore(_: Route) -> None:
    """Let a request wait for its answer."""


async def refuse(route: Route) -> None:
    await route.abort("connectionrefused")


async def test_a_chat_that_cannot_be_loaded_yet_says_so_and_is_loaded_at_once_when_asked(
    site: Site, page: Page
) -> None:
    site.runtime.play(emit(completed("m1", "Here I am"), finished()))
    session_id = await site.edge.session()
    await site.edge.turn(session_id)
    await page.route("**/v1/sessions/*", refuse)
    await page.goto(site.url(session_id))
    await expect(status(page)).to_have_text("Reconnecting…")
    await expect(page.get_by_text("There is no connection.")).to_be_visible()
    await page.unroute_all(behavior="wait")
    await page.get_by_role("button", name="Try now").click()
    await expect(answers(page)).to_have_text(["Here I am"])
    await expect(status(page)).to_have_text("Connected")
    await expect(page.locator("#trouble")).to_be_hidden()


async def test_who_speaks_on_while_a_new_chat_cannot_be_made_stays_where_that_was(
    site: Site, page: Page
) -> None:
    for words in ("Yes", "Still here"):
        site.runtime.play(emit(completed("m1", words), finished()))
    await page.goto(site.url())
    await say(page, "Hello?")
    await expect(answers(page)).to_have_text(["Yes"])
    here = page.url
    await page.route("**/v1/sessions", ignore)
    async with page.expect_request("**/v1/sessions"):
        await page.get_by_role("button", name="New chat").click()
    async with page.expect_event("requestfailed", timeout=BEFORE_IT_GIVES_UP_MS):
        await say(page, "Are you there?")
    await expect(answers(page)).to_have_text(["Yes", "Still here"])
    assert page.url == here


async def test_a_page_that_led_is_kept_by_the_browser_while_another_tab_leads(site: Site) -> None:
    cue = Cue()
    rest = emit(text("m1", " two"), completed("m1", "One two"), finished())
    site.runtime.play(emit(text("m1", "One")), cue.wait(), rest)
    async with chromium(keeps_pages=True) as browser, person(browser) as context:
        first, second = await context.new_page(), await context.new_page()
        await first.goto(site.url())
        await say(first, "Count")
        await expect(answers(first)).to_have_text(["One"])
        await second.goto(first.url)
        await expect(answers(second)).to_have_text(["One"])
        await first.evaluate("window.isKept = true")
        await first.goto(f"http://127.0.0.1:{site.wire.port}/static/icon.svg")
        await site.opened(2)
        assert site.asked[1] == Cursor(1, 2)
        cue.give()
        await expect(answers(second)).to_have_text(["One two"])
        await first.evaluate("history.back()")
        await expect(answers(first)).to_have_text(["One two"])
        assert await first.evaluate("window.isKept")
        assert len(site.asked) == 2
