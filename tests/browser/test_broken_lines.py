"""The chat page through what breaks: reloads, a lost network, other tabs, an edge that is killed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, Page, expect

from edge.core.cursor import Cursor
from tests.browser.site import Cue, Site
from tests.browser.talk import answers, ended, questions, say, status
from tests.faults.scene import Scene, Store
from tests.support.processes import Crew
from tests.support.scripted_runtime import completed, emit, finished, text

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]
TABS = 7
"""One more than a browser's connections to one HTTP/1.1 server."""


def play_two_halves(site: Site) -> Cue:
    """Let the agent say one half, and the other at a cue."""
    cue = Cue()
    rest = emit(text("m1", " two"), completed("m1", "One two"), finished())
    site.runtime.play(emit(text("m1", "One")), cue.wait(), rest)
    return cue


@pytest_asyncio.fixture(loop_scope="session")
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    made = Scene(Crew(tmp_path), Store(path=tmp_path / "journal.db"))
    yield made
    await made.close()


@pytest.mark.proves("S25", "T44")
async def test_a_reload_amid_an_answer_shows_its_beginning_once_and_then_the_rest(
    site: Site, page: Page
) -> None:
    cue = play_two_halves(site)
    await page.goto(site.url())
    await say(page, "Count")
    await expect(answers(page)).to_have_text(["One"])
    await page.get_by_role("textbox", name="Your message").fill("What I meant to say next")
    await page.reload()
    await expect(answers(page)).to_have_text(["One"])
    await expect(questions(page)).to_have_text(["Count"])
    await expect(page.get_by_label("Your message")).to_have_value("What I meant to say next")
    cue.give()
    await expect(answers(page)).to_have_text(["One two"])
    await ended(page)
    assert len(site.runtime.requests) == len(site.keys) == 1


async def test_who_is_offline_is_told_so_and_is_caught_up_at_once_when_back(
    site: Site, page: Page, context: BrowserContext
) -> None:
    cue = play_two_halves(site)
    await page.goto(site.url())
    await say(page, "Count")
    await expect(answers(page)).to_have_text(["One"])
    await context.set_offline(True)
    await expect(status(page)).to_have_text("Offline")
    await expect(page.get_by_text("The answer goes on, and will be here")).to_be_visible()
    cue.give()
    await site.runtime.until(lambda: site.runtime.left == ["finished"])
    await expect(answers(page)).to_have_text(["One"])
    await context.set_offline(False)
    await expect(answers(page)).to_have_text(["One two"])
    await expect(status(page)).to_have_text("Connected")
    await expect(page.locator("#trouble")).to_be_hidden()


async def test_who_does_not_want_to_wait_connects_at_once(site: Site, page: Page) -> None:
    await page.goto(site.url())
    await expect(status(page)).to_have_text("Connected")
    site.wire.refuse()
    site.wire.cut()
    await expect(status(page)).to_have_text("Reconnecting…")
    await site.wire.open()
    await page.get_by_role("button", name="Try now").click()
    await expect(status(page)).to_have_text("Connected")


@pytest.mark.proves("T33", "S62")
async def test_two_tabs_share_one_stream_and_the_second_takes_it_over_from_the_first(
    site: Site, page: Page, context: BrowserContext
) -> None:
    cue = play_two_halves(site)
    await page.goto(site.url())
    await say(page, "Count")
    await expect(answers(page)).to_have_text(["One"])
    second = await context.new_page()
    await second.goto(page.url)
    await expect(answers(second)).to_have_text(["One"])
    await expect(status(second)).to_have_text("Connected")
    assert len(site.asked) == 1
    await page.close()
    await site.opened(2)
    assert site.asked[1] == Cursor(1, 2)
    cue.give()
    await expect(answers(second)).to_have_text(["One two"])


@pytest.mark.proves("S71")
async def test_a_seventh_tab_loads_and_hears_what_the_first_one_says(
    site: Site, page: Page, context: BrowserContext
) -> None:
    site.runtime.play(emit(completed("m1", "Hello, all of you"), finished()))
    await page.goto(site.url())
    await expect(status(page)).to_have_text("Connected")
    tabs = [await context.new_page() for _ in range(TABS - 1)]
    for tab in tabs:
        await tab.goto(page.url)
        await expect(status(tab)).to_have_text("Connected")
    await say(page, "Hi")
    for tab in tabs:
        await expect(answers(tab)).to_have_text(["Hello, all of you"])
    assert len(site.asked) == 1


async def test_an_edge_that_is_killed_amid_an_answer_costs_none_of_it(
    scene: Scene, page: Page
) -> None:
    await scene.set(2)
    wire = await scene.wire(scene.ports[0])
    session_id = await scene.session()
    await page.goto(f"http://127.0.0.1:{wire.port}/#{session_id}")
    await expect(status(page)).to_have_text("Connected")
    await scene.turn(session_id, {"say": "ja", "words": 200, "word_ms": 20})
    await expect(answers(page)).to_contain_text("ja ja ja")
    scene.nodes[0].kill("own")
    wire.target = scene.ports[1]
    await ended(page)
    await expect(answers(page)).to_have_text(["ja " * 200])
    await expect(status(page)).to_have_text("Connected")
