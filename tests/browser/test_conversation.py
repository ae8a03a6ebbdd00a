"""What the chat page shows of a turn, and what a person answers: reasoning, tools, questions, stops, failures."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration
from playwright.async_api import Page, expect
from unbroken.v1 import agent_runtime_pb2 as pb

from tests.browser.site import Cue, Site
from tests.browser.talk import answers, ended, questions, say
from tests.support.scripted_runtime import (
    Step,
    completed,
    emit,
    finished,
    suspended,
    text,
    tool_finished,
    tool_started,
    wait_for_cancel,
)

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="session"),
]
FAILED = pb.TurnFinished(
    outcome=pb.TURN_OUTCOME_FAILED,
    error=pb.ErrorInfo(reason="OUT_OF_PAPER", user_message="Out of paper."),
)


def asks(call: pb.ToolCallStarted, reason: pb.SuspendReason.ValueType) -> Step:
    return emit(call, suspended(reason, call.tool_call_id))


def resolution(site: Site) -> pb.ToolCallResolution:
    """Return with what the one turn was resumed."""
    (_, resumed) = site.runtime.requests
    assert isinstance(resumed, pb.ResumeTurnRequest)
    (only,) = resumed.resolutions
    return only


async def test_reasoning_is_folded_and_stays_apart_from_the_answer(site: Site, page: Page) -> None:
    cue = Cue()
    settled = completed("m1", "Six")
    settled.reasoning = "Two by three"
    rest = emit(text("m1", "Six"), settled, finished())
    thought = pb.ReasoningDelta(message_id="m1", text="Two by")
    site.runtime.play(emit(thought), cue.wait(), rest)
    await page.goto(site.url())
    await say(page, "2 * 3")
    await expect(page.get_by_text("Thinking…")).to_be_visible()
    await expect(page.get_by_text("Two by")).to_be_hidden()
    await page.get_by_text("Thinking…").click()
    await expect(page.get_by_text("Two by")).to_be_visible()
    cue.give()
    await expect(answers(page)).to_have_text(["Six"])
    await expect(page.get_by_text("Reasoning")).to_be_visible()
    await expect(page.get_by_text("Two by three")).to_be_visible()  # it stays as a person left it


async def test_a_tool_shows_its_arguments_progress_result_and_duration(
    site: Site, page: Page
) -> None:
    cue = Cue()
    started = tool_started("c1", '{"city":"Rome"}', gated=False)
    begun = pb.ToolCallProgress(tool_call_id="c1", message="looking", fraction=0.25)
    done = tool_finished("c1", '"sunny"')
    done.run_duration.CopyFrom(Duration(seconds=2, nanos=500_000_000))
    site.runtime.play(emit(started, begun), cue.wait(), emit(done, finished()))
    await page.goto(site.url())
    await say(page, "Weather?")
    card = page.locator(".card")
    await expect(card.locator("summary")).to_have_text("actrunning")
    await expect(card.get_by_role("progressbar")).to_have_attribute("value", "0.25")
    await expect(card).to_contain_text("looking · 25 %")
    await card.locator("summary").click()
    await expect(card.get_by_text('"city": "Rome"')).to_be_visible()
    cue.give()
    await expect(card.locator("summary")).to_have_text("actdone2.5 s")
    await expect(card.get_by_text("sunny")).to_be_visible()
    await expect(card.get_by_role("progressbar")).to_have_count(0)


@pytest.mark.parametrize("answer", ["Approve", "Deny"])
async def test_a_tool_that_needs_permission_asks_for_it_and_goes_on(
    site: Site, page: Page, answer: str
) -> None:
    site.runtime.play(asks(tool_started("c1"), pb.SUSPEND_REASON_INPUT_REQUIRED))
    site.runtime.play(emit(completed("m1", "I see"), finished()))
    await page.goto(site.url())
    await say(page, "Act!")
    question = page.get_by_role("group", name="May “act” run?")
    await expect(question).to_be_visible()
    await expect(
        page.get_by_role("status").get_by_text("The agent waits for you.")
    ).to_be_attached()
    await page.reload()
    await question.get_by_role("button", name=answer).press("Enter")
    await ended(page)
    await expect(answers(page)).to_have_text(["I see"])
    await expect(question).to_have_count(0)
    assert resolution(site).tool_call_id == "c1"
    assert resolution(site).execute == (answer == "Approve")


async def test_a_call_is_asked_about_even_if_an_earlier_turn_had_one_of_the_same_name(
    site: Site, page: Page
) -> None:
    for _ in range(2):
        site.runtime.play(asks(tool_started("c1"), pb.SUSPEND_REASON_INPUT_REQUIRED))
        site.runtime.play(emit(completed("m1", "I see"), finished()))
    await page.goto(site.url())
    for turn in (1, 2):
        await say(page, "Act!")
        await page.get_by_role("button", name="Approve").click()
        await ended(page)
        await expect(answers(page)).to_have_text(["I see"] * turn)


async def test_a_tool_in_the_browser_gets_its_answer_from_the_person(
    site: Site, page: Page
) -> None:
    call = tool_started("c1", '{"prompt":"Which colour?"}', gated=False)
    call.executor = pb.TOOL_EXECUTOR_CLIENT
    site.runtime.play(asks(call, pb.SUSPEND_REASON_CLIENT_TOOL))
    site.runtime.play(emit(completed("m1", "I see"), finished()))
    await page.goto(site.url())
    await say(page, "Paint!")
    box = page.get_by_role("textbox", name="Which colour?")
    await box.fill("teal")
    await box.press("Enter")
    await expect(answers(page)).to_have_text(["I see"])
    assert resolution(site).finished.result_json == '"teal"'


@pytest.mark.parametrize("way", ["button", "key"])
@pytest.mark.proves("S49", "S54", "S55")
async def test_a_stop_on_a_page_that_was_reloaded_ends_the_turn_and_keeps_what_was_said(
    site: Site, page: Page, way: str
) -> None:
    stopped = completed("m1", "One")
    stopped.status = pb.MESSAGE_STATUS_INCOMPLETE
    ending = pb.TurnFinished(outcome=pb.TURN_OUTCOME_CANCELLED)
    site.runtime.play(emit(text("m1", "One")), wait_for_cancel(), emit(stopped, ending))
    await page.goto(site.url())
    await say(page, "Count")
    await expect(answers(page)).to_have_text(["One"])
    await page.reload()
    await expect(answers(page)).to_have_text(["One"])
    if way == "button":
        await page.get_by_role("button", name="Stop").click()
    else:
        await page.keyboard.press("Escape")
    await ended(page)
    for _ in range(2):
        await expect(answers(page)).to_have_text(["One"])
        await expect(page.locator(".note:visible")).to_have_text(["Stopped."])
        await page.reload()


async def test_a_turn_that_failed_says_why_and_can_be_tried_again(site: Site, page: Page) -> None:
    site.runtime.play(emit(FAILED))
    site.runtime.play(emit(completed("m1", "Here"), finished()))
    await page.goto(site.url())
    await say(page, "Print it")
    await expect(page.locator(".bad")).to_contain_text("Out of paper.")
    await page.get_by_role("button", name="Try again").click()
    await expect(answers(page)).to_have_text(["Here"])
    await expect(questions(page)).to_have_text(["Print it", "Print it"])
    await expect(page.get_by_role("button", name="Try again")).to_be_hidden()


async def test_a_chat_that_is_not_there_is_said_so_and_a_new_one_offered(
    site: Site, page: Page
) -> None:
    await page.goto(site.url("nowhere-0123456789abcdef"))
    await expect(page.get_by_text("There is no such chat")).to_be_visible()
    await page.get_by_role("button", name="Start a new chat").click()
    await expect(page.get_by_role("button", name="Send")).to_be_enabled()
    assert "nowhere" not in page.url


async def test_an_answer_is_heard_when_it_is_whole_and_not_word_by_word(
    site: Site, page: Page
) -> None:
    cue = Cue()
    rest = emit(text("m1", " two"), completed("m1", "One two"), finished())
    site.runtime.play(emit(text("m1", "One")), cue.wait(), rest)
    await page.goto(site.url())
    await say(page, "Count")
    await expect(answers(page)).to_have_text(["One"])
    log = page.get_by_role("log", name="Conversation")
    await expect(log).to_have_attribute("aria-busy", "true")
    await expect(page.locator("#heard")).to_have_text("")
    cue.give()
    await expect(page.locator("#heard")).to_have_text("The answer is complete.")
    await expect(log).to_have_attribute("aria-busy", "false")
    await expect(log.get_by_role("heading")).to_have_text(["You said", "The agent said"])
    await page.reload()
    await expect(answers(page)).to_have_text(["One two"])
    await expect(page.locator("#heard")).to_have_text("")  # what was there at first is no news
