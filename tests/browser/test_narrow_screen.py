"""The chat page at 320 CSS pixels, to which WCAG 2.2 asks pages to reflow (1.4.10): nothing lies aside."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Page, expect
from unbroken.v1 import agent_runtime_pb2 as pb

from tests.browser.site import Cue, Site
from tests.browser.talk import say, status
from tests.support.scripted_runtime import completed, emit, suspended, tool_finished, tool_started

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]
WORD = "x" * 400
ASIDE = """() => {
  const around = (text) => {
    const range = document.createRange();
    range.selectNode(text);
    return range;
  };
  const isAside = (box) => {
    const { width, left, right } = box.getBoundingClientRect();
    return width > 0 && (left < 0 || right > innerWidth);
  };
  const texts = (part) => [...part.childNodes].filter((node) => node instanceof Text).map(around);
  const shown = [...document.body.querySelectorAll("*:not(.unseen)")].filter((part) => part.checkVisibility());
  return shown.filter((part) => [part, ...texts(part)].some(isAside)).map((part) => part.outerHTML.slice(0, 80));
}"""
"""The parts of the page that do not lie within the screen, or whose text does not."""


def long_call(call_id: str) -> pb.ToolCallStarted:
    call = tool_started(call_id, json.dumps({WORD: WORD}), gated=False)
    call.tool_name = "a_tool_" + "whose_name_is_long_" * 6
    return call


async def test_words_without_end_tools_and_questions_keep_to_a_narrow_screen(
    site: Site, page: Page
) -> None:
    looking = pb.ToolCallProgress(tool_call_id="c1", message=WORD, fraction=0.5)
    said = completed("m1", WORD)
    said.reasoning = WORD
    cue = Cue()
    failure = pb.ErrorInfo(reason="OUT_OF_PAPER", user_message=WORD)
    site.runtime.play(
        emit(said, long_call("c1"), looking),
        cue.wait(),
        emit(tool_finished("c1", json.dumps(WORD)), long_call("c2")),
        emit(suspended(pb.SUSPEND_REASON_INPUT_REQUIRED, "c2")),
    )
    site.runtime.play(emit(pb.TurnFinished(outcome=pb.TURN_OUTCOME_FAILED, error=failure)))
    await page.set_viewport_size({"width": 320, "height": 640})
    await page.goto(site.url())
    assert await page.evaluate(ASIDE) == []
    await say(page, WORD)
    await expect(page.get_by_role("progressbar")).to_be_visible()
    assert await page.evaluate(ASIDE) == []
    cue.give()
    approve = page.get_by_role("button", name="Approve")
    await expect(approve).to_be_visible()
    for folded in await page.locator("summary").all():
        await folded.click()
    assert await page.evaluate(ASIDE) == []
    await approve.click()
    await expect(page.get_by_role("button", name="Try again")).to_be_visible()
    site.wire.refuse()
    site.wire.cut()
    await expect(page.get_by_role("button", name="Try now")).to_be_visible()
    await expect(status(page)).to_be_visible()
    assert await page.evaluate(ASIDE) == []
