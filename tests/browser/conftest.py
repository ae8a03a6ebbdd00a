"""One Chromium for all tests of this folder, and a profile of its own for each."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page

from tests.browser.site import Site, open_site
from tests.support.chromium import chromium, person


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    async with person(browser) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> Page:
    return await context.new_page()


@pytest_asyncio.fixture(loop_scope="session")
async def site() -> AsyncIterator[Site]:
    async with open_site() as opened:
        yield opened
