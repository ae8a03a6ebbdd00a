"""The AI SDK's format as a fold over a turn: what each event becomes, for both majors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from edge.core.cursor import START
from edge.core.event import Event
from edge.core.recap import Recap
from edge.ports import MustReplay
from edge.wire.ai_sdk import V6, V7, Major, TurnEncoder
from edge.wire.native import EVENT_TYPES
from tests.edge.wire.turns import Log, start

BOTH = pytest.mark.parametrize("major", [V6, V7], ids=["v6", "v7"])


def recap_of(events: Iterable[Event]) -> Recap:
    """Return what is known of a turn once these events are in the log."""
    known = tuple(event for event in events if event.structural)
    return Recap("t1", START, known, finished=False, waiting=())


def told(log: Log, major: Major = V7, *, known: int = 1, after_seq: int = 0) -> bytes:
    """Return the stream of a turn; ``known`` events were in the log when it began."""
    encoder = TurnEncoder(recap_of(log.events[:known]), after_seq, major=major)
    return b"".join(encoder.event(event) for event in log.events)


def chunks(stream: bytes) -> list[Any]:
    frames = [frame.removeprefix("data: ") for frame in stream.decode("ascii").split("\n\n")]
    assert frames.pop() == ""
    return [json.loads(frame) for frame in frames if frame != "[DONE]"]


def kinds(log: Log, major: Major = V7, **options: int) -> list[str]:
    return [chunk["type"] for chunk in chunks(told(log, major, **options))]


def only(log: Log, kind: str, major: Major = V7) -> dict[str, Any]:
    (found,) = [chunk for chunk in chunks(told(log, major)) if chunk["type"] == kind]
    return dict(found)


@BOTH
@pytest.mark.proves("P-AI-5", "P-AI-7")
def test_a_whole_turn_is_one_message_of_steps(major: Major) -> None:
    log = start().reasoning("m1", "Hm").token("m1", "Let me ").token("m1", "look.")
    log.message("m1", "Let me look.", reasoning="Hm").tool("c1").tool_end("c1", "succeeded")
    log.token("m2", "Done").message("m2", "Done.").add("done", outcome="completed")
    stream = told(log, major)
    assert stream.endswith(b'data: {"type":"finish","finishReason":"stop"}\n\ndata: [DONE]\n\n')
    assert kinds(log, major) == [
        "start", "start-step",
        "reasoning-start", "reasoning-delta",
        "reasoning-end", "text-start", "text-delta", "text-delta", "text-end",
        "tool-input-available", "tool-output-available",
        "finish-step", "start-step", "text-start", "text-delta", "text-delta", "text-end",
        "finish-step", "finish",
    ]  # fmt: skip
    assert chunks(stream)[0] == {"type": "start", "messageId": "t1"}
    assert chunks(stream)[-3] == {"type": "text-end", "id": "m2"}
    assert chunks(stream)[-4] == {"type": "text-delta", "id": "m2", "delta": "."}


@BOTH
@pytest.mark.proves("P-AI-6", "P-SSE-5")
def test_a_replay_is_the_live_stream_byte_for_byte(major: Major) -> None:
    log = start().tool("c1").add("tool_progress", call_id="c1", message="half", fraction=0.5)
    log.tool_end("c1", "unknown").add("state", changes=[{"key": "k", "value_json": "1"}])
    log.message("m1", "All at once.", reasoning="Hm").add("done", outcome="completed")
    live = told(log, major)
    assert all(told(log, major, known=n) == live for n in range(1, len(log.events) + 1))


@pytest.mark.proves("P-AI-6")
def test_a_replay_of_streamed_text_is_the_live_stream_byte_for_byte() -> None:
    log = start().reasoning("m1", "H").token("m1", "A").token("m1", "B").message("m1", "AB")
    log.token("m2", "C").message("m2", "CD").add("done", outcome="completed")
    live = told(log)
    assert all(told(log, known=n) == live for n in range(1, len(log.events) + 1))


@BOTH
@pytest.mark.proves("P-AI-8", "P-EVT-5")
@pytest.mark.parametrize(
    ("outcome", "error", "expected"),
    [
        ("failed", {"reason": "X", "user_message": "No luck"}, ("No luck", "failed")),
        ("failed", {}, ("This tool failed.", "failed")),
        ("failed", {"reason": "DENIED"}, ("This tool failed.", "failed")),
        ("unknown", {"reason": "X"}, ("It is not known whether this tool acted.", "unknown")),
        ("not_executed", {"reason": "X"}, ("This tool was not run.", "not_executed")),
    ],
)
def test_a_tool_that_did_not_succeed_says_which_way(
    major: Major, outcome: str, error: dict[str, str], expected: tuple[str, str]
) -> None:
    log = start().tool("c1").tool_end("c1", outcome, error=error)
    chunk = only(log, "tool-output-error", major)
    assert (chunk["errorText"], chunk["toolMetadata"]["outcome"]) == expected


@pytest.mark.proves("P-AI-8")
def test_a_tool_that_a_person_refused_is_denied() -> None:
    log = start().tool("c1").tool_end("c1", "not_executed", error={"reason": "DENIED"})
    assert only(log, "tool-output-denied")["toolCallId"] == "c1"


@pytest.mark.proves("P-AI-8", "T28")
def test_a_tool_of_the_runtime_is_nothing_that_a_page_must_know_or_run() -> None:
    log = start().tool("c1").tool_end("c1", "succeeded", result_json='{"n":1e999}')
    call = only(log, "tool-input-available")
    assert (call["dynamic"], call["providerExecuted"]) == (True, True)
    assert call["input"] == {"id": 9007199254740993}
    assert only(log, "tool-output-available")["output"] == {"n": "1e999"}


@pytest.mark.proves("P-AI-8")
@pytest.mark.parametrize("arguments", ["{", "", "[" * 100_000, '"\\ud800"'])
def test_arguments_that_are_no_json_reach_the_page_as_they_are(arguments: str) -> None:
    log = start().add(
        "tool_start", call_id="c1", name="act", arguments_json=arguments, executor="runtime"
    )
    shown = only(log, "tool-input-available")["input"]
    assert shown in (arguments, "\ud800")


@pytest.mark.proves("P-AI-8", "P-AI-10")
def test_a_tool_of_the_page_is_offered_to_it_until_it_has_an_outcome() -> None:
    log = start().add(
        "tool_start", call_id="c1", name="locate", arguments_json="{}", executor="client"
    )
    log.suspend("client_tool", "c1")
    offered = only(log, "tool-input-available")
    assert "providerExecuted" not in offered and "dynamic" not in offered
    log.attempt(2).tool_end("c1", "succeeded", result_json="1").add("done", outcome="completed")
    again = [c for c in chunks(told(log, known=99)) if c["type"] == "tool-input-available"]
    assert [chunk["providerExecuted"] for chunk in again] == [True]


@pytest.mark.proves("P-AI-12")
def test_progress_is_told_and_only_a_preliminary_result_is_kept() -> None:
    log = (
        start()
        .tool("c1")
        .add(
            "tool_progress",
            call_id="c1",
            message="half",
            fraction=0.5,
            preliminary_result_json="[1]",
        )
    )
    assert only(log, "data-progress") == {
        "type": "data-progress", "id": "c1", "transient": True,
        "data": {"message": "half", "fraction": 0.5},
    }  # fmt: skip
    assert only(log, "tool-output-available")["preliminary"] is True


def test_progress_without_words_is_its_result_alone() -> None:
    log = start().tool("c1")
    log.add("tool_progress", call_id="c1", message="", preliminary_result_json="[1]")
    assert kinds(log)[3:] == ["tool-output-available"]


@pytest.mark.proves("P-AI-8")
def test_what_is_said_of_a_call_that_never_began_is_not_told_for_a_client_fails_on_it() -> None:
    log = start().add("tool_progress", call_id="c9", message="half", preliminary_result_json="1")
    log.tool_end("c9", "unknown").suspend("input_required", "c9")
    assert kinds(log) == ["start", "data-suspended", "finish"]


@pytest.mark.proves("P-AI-12")
def test_state_notices_and_events_of_the_agents_own_are_data_parts() -> None:
    log = start().add(
        "state", changes=[{"key": "k", "value_json": "1"}, {"key": "l", "removed": True}]
    )
    log.add("notice", error={"reason": "SLOW"}).add("custom", name="chart", value_json="[1]")
    data = [c for c in chunks(told(log)) if c["type"].startswith("data-")]
    assert data == [
        {"type": "data-state", "id": "k", "data": {"key": "k", "value": 1}},
        {"type": "data-state", "id": "l", "data": {"key": "l", "removed": True}},
        {"type": "data-notice", "data": {"error": {"reason": "SLOW"}}},
        {"type": "data-chart", "data": [1]},
    ]


def test_neither_what_says_nothing_nor_what_the_user_says_is_told() -> None:
    parts = [{"type": "text", "text": "And?"}]
    log = start().token("m1", "").reasoning("m1", "").message("m1", "")
    log.add("message", message_id="m2", role="user", parts=parts, status="complete")
    assert kinds(log) == ["start"]


def test_what_a_message_holds_besides_text_follows_it() -> None:
    file = {"type": "file", "uri": "https://x.test/a", "media_type": "image/png", "name": "a"}
    parts = [{"type": "text", "text": "See"}, file, {"type": "data", "data_json": "[1]"}]
    log = start().add("message", message_id="m1", role="agent", parts=parts, status="complete")
    assert chunks(told(log))[5:] == [
        {"type": "file", "url": "https://x.test/a", "mediaType": "image/png", "filename": "a"},
        {"type": "data-part", "data": [1]},
    ]


@pytest.mark.proves("P-AI-9")
@pytest.mark.parametrize(
    ("major", "outcome", "reason"),
    [
        (V6, "completed", "stop"),
        (V6, "limit", "length"),
        (V6, "cancelled", "other"),
        (V7, "cancelled", "interrupted"),
    ],
)
def test_every_outcome_has_a_reason(major: Major, outcome: str, reason: str) -> None:
    log = start().token("m1", "Hal").message("m1", "Hal", "incomplete").add("done", outcome=outcome)
    assert only(log, "finish", major)["finishReason"] == reason
    assert ("abort" in kinds(log, major)) == (outcome == "cancelled")


@pytest.mark.proves("P-AI-9")
@pytest.mark.parametrize(
    ("body", "words"), [({"user_message": "Sorry"}, "Sorry"), ({}, "runtime_error")]
)
def test_a_turn_that_failed_is_an_error_and_ends(body: dict[str, str], words: str) -> None:
    log = start().token("m1", "Hal").message("m1", "Hal", "incomplete")
    log.add("error", code="runtime_error", **body)
    assert only(log, "error")["errorText"] == words
    assert told(log).endswith(b"[DONE]\n\n")
    assert "finish" not in kinds(log)


@pytest.mark.proves("P-AI-7", "P-EVT-3", "S32")
def test_what_an_attempt_withdraws_leaves_the_step_and_nothing_else_does() -> None:
    log = start().token("m1", "Hi").message("m1", "Hi")
    log.token("m2", "Wro").tool("c1").reasoning("m3", "Hm").attempt(2)
    log.tool_end("c1", "unknown").token("m4", "Right").message("m4", "Right")
    log.add("done", outcome="completed")
    tail = kinds(log)[kinds(log).index("reset-step") :]
    assert tail == [
        "reset-step", "tool-input-available", "tool-output-error",
        "finish-step", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish",
    ]  # fmt: skip
    assert "Wro" not in str(chunks(told(log, known=99)))
    assert "reset-step" not in kinds(log, known=99)
    with pytest.raises(MustReplay):
        told(log, V6)
    assert "Wro" not in str(chunks(told(log, V6, known=99)))


@pytest.mark.proves("P-AI-7", "P-SSE-11")
def test_text_that_did_not_survive_its_writer_is_taken_back() -> None:
    encoder = TurnEncoder(recap_of(start().events), 0, major=V7)
    log = start().token("m1", "Hel").token("m1", "lo")
    for event in log.events:
        encoder.event(event)
    assert chunks(encoder.rewind(2)) == [
        {"type": "reset-step"},
        {"type": "text-start", "id": "m1"},
        {"type": "text-delta", "id": "m1", "delta": "Hel"},
    ]
    assert encoder.rewind(2) == b""
    rest = log.cut(2).message("m1", "Hello").events[-1]
    assert [c["type"] for c in chunks(encoder.event(rest))] == ["text-delta", "text-end"]


def test_progress_that_did_not_survive_its_writer_is_let_be() -> None:
    encoder = TurnEncoder(recap_of(start().events), 0, major=V6)
    for event in start().tool("c1").add("tool_progress", call_id="c1", message="half").events:
        encoder.event(event)
    assert encoder.rewind(2) == b""


@pytest.mark.proves("P-AI-7", "P-EVT-2")
@pytest.mark.parametrize(("says", "status"), [("Else", "complete"), ("", "discarded")])
def test_a_message_that_says_something_else_in_the_end_replaces_what_was_streamed(
    says: str, status: str
) -> None:
    log = start().token("m1", "Hello").message("m1", says, status).add("done", outcome="completed")
    assert "reset-step" in kinds(log)
    with pytest.raises(MustReplay):
        told(log, V6)
    for major in (V6, V7):
        last = chunks(told(log, major, known=99))
        words = [c["delta"] for c in last if c["type"] == "text-delta"]
        assert (words[-1:] or [""])[0] == says


@pytest.mark.proves("P-AI-7", "P-EVT-2")
def test_reasoning_that_was_lost_is_not_appended_to_a_part_that_is_closed() -> None:
    log = start().reasoning("m1", "H").token("m1", "Yes").message("m1", "Yes", reasoning="Hm")
    assert kinds(log)[kinds(log).index("reset-step") + 1 :][:3] == [
        "reasoning-start", "reasoning-delta", "reasoning-end",
    ]  # fmt: skip
    with pytest.raises(MustReplay):
        told(log, V6)


@BOTH
@pytest.mark.proves("P-AI-7")
def test_reasoning_that_goes_on_after_text_is_another_part(major: Major) -> None:
    log = start().reasoning("m1", "H").token("m1", "Yes").reasoning("m1", "m").token("m1", "!")
    log.message("m1", "Yes!", reasoning="Hm")
    assert kinds(log, major)[2:] == [
        "reasoning-start", "reasoning-delta", "reasoning-end", "text-start", "text-delta",
        "reasoning-start", "reasoning-delta", "reasoning-end", "text-delta", "text-end",
    ]  # fmt: skip


def test_a_message_that_was_cut_short_in_the_log_keeps_what_was_streamed() -> None:
    log = start().token("m1", "Hello").message("m1", "Hel", "incomplete", truncated="yes")
    assert "reset-step" not in kinds(log)
    log = start().token("m1", "Hello").message("m1", "Bye", "incomplete", truncated="yes")
    assert "reset-step" in kinds(log)


@pytest.mark.proves("P-AI-10")
def test_a_turn_that_waits_for_a_person_asks_and_ends_its_stream() -> None:
    log = start().tool("c1").suspend("input_required", "c1", prompt="Pay?")
    assert only(log, "tool-approval-request") == {
        "type": "tool-approval-request", "approvalId": "c1", "toolCallId": "c1", "reason": "Pay?",
    }  # fmt: skip
    assert kinds(log)[-2:] == ["finish-step", "finish"]
    assert only(log, "finish")["finishReason"] == "tool-calls"
    assert told(log, known=3) == told(log)


@pytest.mark.proves("P-AI-10")
def test_a_turn_that_has_waited_is_replayed_past_its_wait() -> None:
    log = start().tool("c1").suspend("input_required", "c1").attempt(2)
    log.tool_end("c1", "succeeded").message("m1", "Paid").add("done", outcome="completed")
    finishes = [c for c in chunks(told(log, known=99)) if c["type"] == "finish"]
    assert [chunk["finishReason"] for chunk in finishes] == ["stop"]
    assert kinds(log, known=99)[-1] == "finish"


@BOTH
@pytest.mark.proves("P-AI-10")
def test_a_turn_that_goes_on_is_told_from_where_it_waited_in_a_step_of_its_own(
    major: Major,
) -> None:
    log = start().token("m0", "Hm").message("m0", "Hm").tool("c1").suspend("input_required", "c1")
    waited = log.events[-1].seq
    log.attempt(2).tool_end("c1", "succeeded").message("m1", "Paid").add(
        "done", outcome="completed"
    )
    assert kinds(log, major, known=5, after_seq=waited) == [
        "start", "start-step", "tool-output-available",
        "finish-step", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish",
    ]  # fmt: skip


@pytest.mark.parametrize("reason", ["checkpoint", "draining"])
def test_a_suspension_that_nobody_has_to_answer_is_not_shown(reason: str) -> None:
    assert kinds(start().suspend(reason, "c1")) == ["start"]


def test_what_happens_after_the_end_of_a_stream_is_not_told() -> None:
    log = start().add("done", outcome="completed").start_turn("t2").token("m1", "Other")
    assert kinds(log) == ["start", "finish"]
    log = start().tool("c1").suspend("client_tool", "c1")
    waiting = told(log, known=3)
    log.attempt(2).token("m1", "Other")
    assert told(log, known=3) == waiting


def test_every_type_of_event_has_its_meaning() -> None:
    encoder = TurnEncoder(recap_of(start().events), 0, major=V7)
    assert encoder._handlers.keys() == EVENT_TYPES
