"""The connection lab in Chromium, with real processes: the naive column fails, and the durable one does not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from tests.lab.processes import START_SECONDS
from tests.support.processes import Child, Crew

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(420),
    pytest.mark.asyncio(loop_scope="session"),
]

PACE = {"LAB_TOOL_SECONDS": "6", "LAB_IDLE_SECONDS": "4", "LAB_WORD_SECONDS": "0.03"}
"""The slow tool behind the impatient proxy, four times as fast."""
WHOLE = " ".join(map(str, range(1, 61)))


@pytest.fixture(scope="module")
def process(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    folder = tmp_path_factory.mktemp("lab")
    crew = Crew(folder)
    yield crew.start("lab", "tests.lab", PORT="0", TMPDIR=str(folder), **PACE)
    crew.close()


@pytest_asyncio.fixture(loop_scope="session")
async def lab(process: Child, page: Page) -> AsyncIterator[Page]:
    await page.goto(f"http://127.0.0.1:{await process.port(START_SECONDS)}/")
    await expect(page.locator("#slow")).to_contain_text("6 s tool")
    yield page
    for trouble in await page.locator("[aria-pressed=true]").all():  # left by a test that failed
        await trouble.click()


async def hear(page: Page, words: str, *columns: str) -> None:
    """Wait until each column's answer holds some words."""
    for column in columns or ("durable", "naive"):
        await expect(page.locator(f"#{column} .answer")).to_contain_text(words)


async def counts(page: Page, column: str) -> dict[str, int]:
    """Return the numbers that a person reads at a glance."""
    names = await page.locator(f"#{column} .counts dt").all_text_contents()
    numbers = await page.locator(f"#{column} .counts dd").all_text_contents()
    return {
        name.replace("runs", "run"): int(number)
        for name, number in zip(names, numbers, strict=True)
    }


async def numbers(page: Page, column: str) -> str:
    """Return every number that a column has counted to, as it stands on the screen."""
    words = " ".join(await page.locator(f"#{column} .answer .text").all_text_contents()).split()
    return " ".join(word for word in words if word.isdigit())


async def assert_unbroken(page: Page) -> None:
    """Assert that the durable column comes to its end, with everything once."""
    await expect(page.locator("#durable .status")).to_contain_text("finished")
    tool_runs = page.locator("#durable .counts dd").nth(2)
    await expect(tool_runs).to_have_text("1")  # asked of the lab, so it may be late
    found = await counts(page, "durable")
    assert (found["shown twice"], found["lost"], found["tool run"]) == (0, 0, 1)
    assert await numbers(page, "durable") == WHOLE


async def assert_broken(page: Page) -> None:
    """Assert that the naive column shows things twice and acts twice."""
    naive = await counts(page, "naive")
    assert naive["shown twice"] > 0
    assert naive["tool run"] > 1


async def test_after_a_cut_only_the_naive_column_shows_things_twice_and_acts_twice(
    lab: Page,
) -> None:
    await lab.click("#start")
    await hear(lab, "book_table: runs")
    await lab.click("[data-trouble=cut]")
    await assert_unbroken(lab)
    await hear(lab, "booking no. 2", "naive")
    await assert_broken(lab)
    assert (await counts(lab, "naive"))["lost"] > 0


async def test_after_a_kill_only_the_naive_column_shows_things_twice_and_acts_twice(
    lab: Page,
) -> None:
    await lab.click("#start")
    await hear(lab, "book_table: runs")
    await lab.click("[data-trouble=kill]")
    await assert_unbroken(lab)
    await hear(lab, "nobody knows whether it ran", "durable")
    await hear(lab, "booking no. 2", "naive")
    await assert_broken(lab)


@pytest.mark.proves("S66")
async def test_behind_an_impatient_proxy_only_the_naive_column_never_gets_past_a_slow_tool(
    lab: Page,
) -> None:
    await lab.click("#slow")
    await assert_unbroken(lab)
    await expect(lab.locator("#naive .status")).to_contain_text("gave up")
    await assert_broken(lab)
    assert (await counts(lab, "naive"))["lost"] > 0
    await expect(lab.locator("#naive .answer")).not_to_contain_text("Booked")


async def test_while_a_server_is_paused_only_the_naive_column_shows_things_twice_and_acts_twice(
    lab: Page,
) -> None:
    await lab.click("#start")
    await hear(lab, "book_table: runs")
    await lab.click("[data-trouble=pause]")
    await assert_unbroken(lab)
    await hear(lab, "booking no. 2", "naive")
    await assert_broken(lab)
    await lab.click("[data-trouble=pause]")  # and the old owner goes on, not knowing
    await expect(lab.locator("#durable .aside")).not_to_contain_text("paused")
    await assert_unbroken(lab)


async def test_in_a_black_hole_only_the_naive_column_waits_for_ever(lab: Page) -> None:
    await lab.click("#start")
    await hear(lab, "book_table: runs")
    await lab.click("[data-trouble=hole]")
    await assert_unbroken(lab)
    await expect(lab.locator("#naive .counts .bad dt")).to_have_text("s of silence")
    await expect(lab.locator("#naive .status")).to_have_text("connected")
    await expect(lab.locator("#naive .answer")).not_to_contain_text("Booked")


async def test_without_its_store_and_on_a_narrow_network_the_durable_column_waits_and_goes_on(
    lab: Page,
) -> None:
    await lab.click("#start")
    await hear(lab, "book_table: runs")
    await lab.click("[data-trouble=store]")
    await expect(lab.locator("#durable .status")).to_have_text("connected; the store is away")
    await lab.click("[data-trouble=throttle]")
    await expect(lab.locator("[data-trouble=throttle]")).to_have_attribute("aria-pressed", "true")
    await lab.click("[data-trouble=store]")
    await expect(lab.locator("#durable .status")).to_have_text("connected")
    await lab.click("[data-trouble=throttle]")
    await assert_unbroken(lab)


@pytest.mark.parametrize("failure", ["refused", "unreachable"])
async def test_what_the_lab_could_not_do_is_said_until_it_can(lab: Page, failure: str) -> None:
    async def fail(route: Route) -> None:
        await (route.fulfill(status=503) if failure == "refused" else route.abort())

    await lab.route("**/api/troubles/*", fail)
    await lab.click("[data-trouble=throttle]")
    await expect(lab.locator("#problem")).to_have_text("The lab could not do that. Try again.")
    await expect(lab.locator("[data-trouble=throttle]")).to_have_attribute("aria-pressed", "false")
    await lab.unroute("**/api/troubles/*", fail)
    await lab.click("[data-trouble=throttle]")
    await expect(lab.locator("[data-trouble=throttle]")).to_have_attribute("aria-pressed", "true")
    await expect(lab.locator("#problem")).to_be_empty()
