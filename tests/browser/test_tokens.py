"""The chat page at an edge that asks for tokens: it has none, and says so; behind a proxy that adds one it works."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from edge.main import WallClock
from tests.browser.site import open_site
from tests.browser.talk import answers, say
from tests.support.issuer import Issuer, bearer, token
from tests.support.scripted_runtime import completed, emit, finished

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest.mark.proves("P-HTTP-17")
async def test_a_page_without_a_sign_in_says_so_and_works_where_a_proxy_signs_its_users_in(
    page: Page,
) -> None:
    async with (
        Issuer().serve() as issuer,
        open_site(authenticator=issuer.authenticator(), clock=WallClock()) as site,
    ):
        site.runtime.play(emit(completed("m1", "Hello"), finished()))
        await page.goto(site.url())
        refusal = page.get_by_text("this page has no sign-in")
        await expect(refusal).to_be_visible()
        await page.set_extra_http_headers(dict([bearer(token())]))
        await page.reload()
        await say(page, "Hi")
        await expect(answers(page)).to_have_text(["Hello"])
        await expect(refusal).to_be_hidden()
