"""The connection lab in Chromium, with real processes: the naive column fails, and the durable one does not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from lab.processes import START_SECONDS
from tests.support.chromium import Page, chromium, find_chromium
from tests.support.processes import Child, Crew

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(420)]

PACE = {"LAB_TOOL_SECONDS": "6", "LAB_IDLE_SECONDS": "4", "LAB_WORD_SECONDS": "0.03"}
"""The slow tool behind the impatient proxy, four times as fast."""
WHOLE = " ".join(map(str, range(1, 61)))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    if find_chromium() is None:
        pytest.skip("NOT RUN: no Chromium on this machine to show the page in")
    folder = tmp_path_factory.mktemp("lab")
    crew = Crew(folder)
    yield crew.start("lab", "lab", PORT="0", TMPDIR=str(folder), **PACE)
    crew.close()


@pytest_asyncio.fixture
async def page(lab: Child, tmp_path: Path) -> AsyncIterator[Page]:
    path = find_chromium()
    assert path is not None
    port = await lab.port(START_SECONDS)
    async with (
        chromium(path, tmp_path / "profile") as browser,
        browser.page(f"http://127.0.0.1:{port}/") as opened,
    ):
        await opened.until("document.getElementById('slow').textContent.includes('6 s tool')")
        yield opened


async def click(page: Page, selector: str) -> None:
    await page.run(f"document.querySelector('{selector}').click()")


def shows(column: str, words: str) -> str:
    """Return the expression for what a column's answer must hold."""
    return f"document.querySelector('#{column} .answer').innerText.includes('{words}')"


def has(column: str, status: str) -> str:
    return f"document.querySelector('#{column} .status').textContent.includes('{status}')"


async def counts(page: Page, column: str) -> dict[str, int]:
    """Return the numbers that a person reads at a glance."""
    cells = f"[...document.querySelectorAll('#{column} .counts div')]"
    pairs = await page.run(
        f"{cells}.map((d) => [d.querySelector('dt').textContent, +d.querySelector('dd').textContent])"
    )
    return {str(name).replace("runs", "run"): int(number) for name, number in pairs}


async def numbers(page: Page, column: str) -> str:
    """Return every number that a column has counted to, as it stands on the screen."""
    items = f"[...document.querySelectorAll('#{column} .answer .text')]"
    words = (await page.run(f"{items}.map((item) => item.textContent).join(' ')")).split()
    return " ".join(word for word in words if word.isdigit())


TOOL_RUNS = "document.querySelector('#durable .counts div:nth-child(3) dd').textContent"


async def assert_unbroken(page: Page) -> None:
    """Assert that the durable column comes to its end, with everything once."""
    await page.until(has("durable", "finished"))
    await page.until(f"{TOOL_RUNS} === '1'")  # asked of the lab, so it may be late
    found = await counts(page, "durable")
    assert (found["shown twice"], found["lost"], found["tool run"]) == (0, 0, 1)
    assert await numbers(page, "durable") == WHOLE


async def assert_broken(page: Page) -> None:
    """Assert that the naive column shows things twice and acts twice."""
    naive = await counts(page, "naive")
    assert naive["shown twice"] > 0
    assert naive["tool run"] > 1


BOTH_WAIT = f"{shows('durable', 'book_table: runs')} && {shows('naive', 'book_table: runs')}"


async def test_after_a_cut_only_the_naive_column_shows_things_twice_and_acts_twice(
    page: Page,
) -> None:
    await click(page, "#start")
    await page.until(BOTH_WAIT)
    await click(page, "[data-trouble=cut]")
    await assert_unbroken(page)
    await page.until(shows("naive", "booking no. 2"))
    await assert_broken(page)
    assert (await counts(page, "naive"))["lost"] > 0


async def test_after_a_kill_only_the_naive_column_shows_things_twice_and_acts_twice(
    page: Page,
) -> None:
    await click(page, "#start")
    await page.until(BOTH_WAIT)
    await click(page, "[data-trouble=kill]")
    await assert_unbroken(page)
    assert await page.run(shows("durable", "nobody knows whether it ran"))
    await page.until(shows("naive", "booking no. 2"))
    await assert_broken(page)


async def test_behind_an_impatient_proxy_only_the_naive_column_never_gets_past_a_slow_tool(
    page: Page,
) -> None:
    await click(page, "#slow")
    await assert_unbroken(page)
    await page.until(has("naive", "gave up"))
    await assert_broken(page)
    assert (await counts(page, "naive"))["lost"] > 0
    assert not await page.run(shows("naive", "Booked"))
