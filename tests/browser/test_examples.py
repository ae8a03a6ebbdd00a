"""The examples of docs/front-end.md that belong in a page, as they stand, in Chromium.

What an example takes for granted is given to it, and nothing else: an id, somewhere to show things, and the map
from a package's name to its file that a build tool would make. The library's wire is cut on the way; how the other readers come back is in
``test_event_source.py`` and ``tests/clients``.
"""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.site import Cue, Site
from tests.support.examples import examples
from tests.support.node import PACKAGES, find_package
from tests.support.scripted_runtime import completed, emit, finished, text

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]
READER = "@microsoft/fetch-event-source"
MAP = json.dumps({"imports": {READER: f"/npm/{READER}/lib/esm/index.js"}})
HTML = f"""<!doctype html><script type="importmap">{MAP}</script>
<script type="module" src="/example.js"></script><body></body>"""
GIVEN = """
const id = location.hash.slice(1);
const print = (...words) => document.body.append(Object.assign(document.createElement("p"), { textContent: words.join(" ") }));
const hear = (type, data, lastEventId) => { if (data.text || type === "done") print(type, data.text ?? data.outcome); };
"""


async def npm(route: Route) -> None:
    """Serve a file of an installed package; a build tool would know its ending, too."""
    path = PACKAGES / route.request.url.partition("/npm/")[2]
    await route.fulfill(path=path if path.suffix else path.with_suffix(".js"))


async def show(page: Page, site: Site, session_id: str, *code: str) -> None:
    """Load a page of the edge's own origin that is made of some code."""
    script = "\n".join((GIVEN, *code))
    await page.route(
        "**/example.html", lambda route: route.fulfill(body=HTML, content_type="text/html")
    )
    await page.route(
        "**/example.js", lambda route: route.fulfill(body=script, content_type="text/javascript")
    )
    await page.route("**/npm/**", npm)
    await page.goto(site.url().replace("/#", f"/example.html#{session_id}"))


def play(site: Site) -> Cue:
    """Let the agent say one word, and the other on a cue."""
    cue = Cue()
    rest = emit(text("m1", "two"), completed("m1", "One two"), finished())
    site.runtime.play(emit(text("m1", "One ")), cue.wait(), rest)
    return cue


async def test_unbroken_js(site: Site, page: Page) -> None:
    cue = play(site)
    draw = "const draw = (view) => (document.body.textContent = JSON.stringify(view.turns));"
    await show(page, site, "", draw, *examples("unbroken.js"))
    await expect(page.locator("body")).to_contain_text('"One "')
    site.wire.cut()
    cue.give()
    await expect(page.locator("body")).to_contain_text('"One two"')
    await expect(page.locator("body")).to_contain_text('"completed"')
    assert len(await page.evaluate("location.hash")) > 16


async def test_events_one_by_one(site: Site, page: Page) -> None:
    cue, session_id = play(site), await site.edge.session()
    await site.edge.turn(session_id)
    given = """
      import { open } from "/static/unbroken/unbroken.js";
      const session = open({ sessionId: id });
      const store = async ({ type, data }) => hear(type, data);
      let saved = "0-0";
    """
    await show(page, site, session_id, given, *examples("Events one by one"))
    await expect(page.locator("p")).to_have_text(["token One"])
    site.wire.cut()
    await assert_whole(page, cue)


async def test_event_source(site: Site, page: Page) -> None:
    cue, session_id = play(site), await site.edge.session()
    await show(page, site, session_id, *examples("EventSource"))
    await site.opened(1)
    await site.edge.turn(session_id)
    await assert_whole(page, cue)


async def test_other_readers(site: Site, page: Page) -> None:
    find_package(READER)
    cue, session_id = play(site), await site.edge.session()
    await site.edge.turn(session_id)
    await show(page, site, session_id, *examples("Other readers"), 'print("over");')
    await assert_whole(page, cue, "over")


async def assert_whole(page: Page, cue: Cue, *then: str) -> None:
    """Assert that the page hears the answer as it is said, and all of it once."""
    heard = page.locator("p")
    await expect(heard).to_have_text(["token One"])
    cue.give()
    await expect(heard).to_have_text(["token One", "token two", "done completed", *then])
