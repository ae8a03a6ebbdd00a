"""Debian's Chromium, driven by Playwright; nothing is ever downloaded.

Knows nothing of any page. Every wait is bounded, and generously: the machine that runs tests is busy.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, BrowserContext, async_playwright, expect

PATIENCE_SECONDS = 60.0
FLAGS = [
    "--no-sandbox",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

expect.set_options(timeout=PATIENCE_SECONDS * 1000)


@asynccontextmanager
async def chromium(*, keeps_pages: bool = False) -> AsyncIterator[Browser]:
    """Run a browser, or skip the test that asked where there is none.

    Whether it keeps pages that are left (in its back/forward cache) is for the test to say.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("NOT RUN: no Chromium on this machine to show the page in")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path,
            args=FLAGS,
            ignore_default_args=["--disable-back-forward-cache"] if keeps_pages else None,
            timeout=PATIENCE_SECONDS * 1000,
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def person(browser: Browser) -> AsyncIterator[BrowserContext]:
    """Open a profile of its own, whose tabs share what tabs share; no script may fail in it."""
    context = await browser.new_context()
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    failures: list[str] = []
    context.on("weberror", lambda failure: failures.append(str(failure.error)))
    try:
        yield context
    finally:
        await context.close()
    assert not failures
