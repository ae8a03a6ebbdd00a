"""What a person finds on the chat page, and does there.

Knows nothing of edges. Everything is found as a person finds it, or by the names that the page gives its parts.
"""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect


def answers(page: Page) -> Locator:
    return page.locator(".bubble.agent:visible")


def questions(page: Page) -> Locator:
    return page.locator(".bubble.user")


def status(page: Page) -> Locator:
    """How the page is connected, in words."""
    return page.locator("#connection")


async def say(page: Page, words: str) -> None:
    """Type and send; waits until that can be done."""
    await expect(page.get_by_role("button", name="Send")).to_be_enabled()
    box = page.get_by_role("textbox", name="Your message")
    await box.fill(words)
    await box.press("Enter")


async def ended(page: Page) -> None:
    """Wait until nothing is under way."""
    await expect(page.get_by_role("button", name="Send")).to_be_enabled()
    await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
