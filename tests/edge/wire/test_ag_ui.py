"""AG-UI: what each event of a turn is to its clients, and that no client is ever left hanging."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edge.wire.ag_ui import AgUiFold, name_in_thread
from edge.wire.ag_ui_events import frame
from edge.wire.native import EVENT_TYPES
from tests.edge.wire.turns import Log, start

Told = list[dict[str, Any]]


def told(log: Log, *, declares_version: bool = True, anew: bool = False) -> Told:
    fold = AgUiFold("thread", declares_version=declares_version, anew=anew)
    return [said for event in log.events for said in fold.apply(event)]


def kinds(events: Told) -> list[str]:
    return [event["type"] for event in events]


def after_start(log: Log, **options: Any) -> Told:
    return told(log, **options)[1:]


@pytest.mark.proves("P-AGUI-2")
def test_a_run_starts_with_what_the_user_said_under_the_id_of_the_users_client() -> None:
    log = Log().add("turn_start", attempt=1, agent="", message_id="u-1", input=[_text("Hi")])
    [event] = told(log)
    assert event["type"] == "RUN_STARTED"
    assert (event["threadId"], event["runId"], event["protocolVersion"]) == ("thread", "t1", "1.0")
    assert event["input"]["messages"] == [{"id": "u-1", "role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("media_type", "medium"), [("image/png", "image"), ("application/pdf", "document")]
)
def test_a_file_that_the_user_sent_is_a_part_of_its_medium(media_type: str, medium: str) -> None:
    file = {"type": "file", "uri": "https://a.example/x", "media_type": media_type}
    data = {"type": "data", "data_json": "[1]"}
    log = Log().add("turn_start", attempt=1, agent="", input=[_text("See"), file, data])
    [message] = told(log)[0]["input"]["messages"]
    assert message["id"] == "t1.input"
    source = {"type": "url", "value": file["uri"], "mimeType": media_type}
    assert message["content"] == [_text("See"), {"type": medium, "source": source}, _text("[1]")]


@pytest.mark.proves("P-AGUI-4")
def test_text_opens_grows_and_closes_without_being_told_twice() -> None:
    log = start().token("m1", "Hel").token("m1", "lo").message("m1", "Hello")
    assert after_start(log) == [
        {"type": "TEXT_MESSAGE_START", "messageId": "t1.m1", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "t1.m1", "delta": "Hel"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "t1.m1", "delta": "lo"},
        {"type": "TEXT_MESSAGE_END", "messageId": "t1.m1"},
    ]


@pytest.mark.proves("P-AGUI-4")
def test_what_was_lost_of_a_message_comes_with_its_end() -> None:
    log = start().token("m1", "Hel").message("m1", "Hello").message("m2", "Bye")
    deltas = [e["delta"] for e in told(log) if e["type"] == "TEXT_MESSAGE_CONTENT"]
    assert deltas == ["Hel", "lo", "Bye"]


@pytest.mark.proves("P-AGUI-4", "P-EVT-2")
def test_a_message_that_ends_otherwise_than_it_was_shown_is_replaced() -> None:
    log = start().token("m1", "Secret").message("m1", "[removed]")
    end, snapshot = after_start(log)[-2:]
    assert end["type"] == "TEXT_MESSAGE_END"
    assert [m["content"] for m in snapshot["messages"]] == ["Hi", "[removed]"]


@pytest.mark.proves("P-AGUI-4")
@pytest.mark.parametrize("text", ["Never mind", ""])
def test_a_discarded_message_is_taken_back(text: str) -> None:
    log = start().token("m1", "Never mind").message("m1", text, status="discarded")
    snapshot = told(log)[-1]
    assert snapshot["type"] == "MESSAGES_SNAPSHOT"
    assert [m["role"] for m in snapshot["messages"]] == ["user"]


def test_a_message_without_text_says_nothing() -> None:
    assert after_start(start().message("m1", "")) == []


def test_an_empty_delta_says_nothing() -> None:
    assert after_start(start().token("m1", "")) == []


@pytest.mark.proves("P-AGUI-4")
def test_reasoning_is_a_message_of_its_own_that_ends_where_the_text_begins() -> None:
    log = start().reasoning("m1", "Hm").token("m1", "Yes").message("m1", "Yes", reasoning="Hm")
    assert kinds(after_start(log)) == [
        "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END", "REASONING_END", "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
    ]  # fmt: skip


def test_reasoning_that_was_lost_comes_with_the_message() -> None:
    log = start().reasoning("m1", "Hm").token("m1", "Yes").message("m1", "Yes", reasoning="Hmmm")
    deltas = [e["delta"] for e in told(log) if e["type"] == "REASONING_MESSAGE_CONTENT"]
    assert deltas == ["Hm", "mm"]


def test_parts_that_are_no_text_are_told_in_an_event_of_ours() -> None:
    file = {"type": "file", "uri": "https://a.example/x.pdf", "media_type": "application/pdf"}
    log = start().add("message", message_id="m1", role="agent", parts=[file], status="complete")
    [event] = after_start(log)
    assert (event["type"], event["name"]) == ("CUSTOM", "unbroken.parts")
    assert event["value"] == {"messageId": "t1.m1", "parts": [file]}
    log = start().add("message", message_id="m1", role="agent", parts=[file], status="discarded")
    assert after_start(log) == []


def test_a_message_says_whose_it_is() -> None:
    log = start().message("m1", "Hi", author="helper")
    log.add("message", message_id="m2", role="user", parts=[_text("And?")], status="complete")
    opened = [e for e in told(log) if e["type"] == "TEXT_MESSAGE_START"]
    assert [(e["role"], e.get("name")) for e in opened] == [("assistant", "helper"), ("user", None)]


@pytest.mark.proves("P-AGUI-5")
def test_a_call_is_shown_whole_and_its_result_when_it_ends() -> None:
    log = start().tool("c1", message_id="m1").tool_end("c1", "succeeded", result_json='{"n":1}')
    assert after_start(log) == [
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "t1.c1",
            "toolCallName": "act",
            "parentMessageId": "t1.m1",
        },
        {"type": "TOOL_CALL_ARGS", "toolCallId": "t1.c1", "delta": '{"id":9007199254740993}'},
        {"type": "TOOL_CALL_END", "toolCallId": "t1.c1"},
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "res-t1.c1",
            "toolCallId": "t1.c1",
            "content": '{"n":1}',
            "role": "tool",
            "metadata": {"unbroken": {"outcome": "succeeded"}},
        },
    ]


@pytest.mark.proves("P-AGUI-5", "P-EVT-5")
@pytest.mark.parametrize("outcome", ["failed", "unknown", "not_executed"])
def test_a_call_that_did_not_succeed_says_how_it_ended(outcome: str) -> None:
    error = {"reason": "WHY", "user_message": "Sorry.", "retryable": False}
    result = told(start().tool("c1").tool_end("c1", outcome, error=error))[-1]
    assert json.loads(result["content"]) == {"outcome": outcome, **error}
    assert result["metadata"]["unbroken"] == {"outcome": outcome, "error": error}


def test_progress_notices_and_an_applications_own_events_are_custom_ones() -> None:
    error = {"reason": "SLOW", "retryable": True}
    log = start().tool("c1")
    log.add("tool_progress", call_id="c1", message="half", fraction=0.5)
    log.add("tool_progress", call_id="c1", message="", preliminary_result_json="[1]")
    log.add("notice", error=error, message_id="m1", call_id="c1")
    log.add("custom", name="acme.citation", value_json='{"page":3}')
    events = [(e["name"], e["value"]) for e in told(log) if e["type"] == "CUSTOM"]
    assert events == [
        ("unbroken.tool_progress", {"toolCallId": "t1.c1", "message": "half", "fraction": 0.5}),
        ("unbroken.tool_progress", {"toolCallId": "t1.c1", "message": "", "result": [1]}),
        ("unbroken.notice", {"error": error, "messageId": "t1.m1", "toolCallId": "t1.c1"}),
        ("acme.citation", {"page": 3}),
    ]


@pytest.mark.proves("P-AGUI-6")
def test_state_changes_are_a_patch_that_fits_whatever_state_a_client_has() -> None:
    log = start().add("state", changes=[{"key": "a/b~c", "value_json": "[1]"}])
    log.add("state", changes=[{"key": "x", "removed": True}])
    first, second = after_start(log)
    assert first["delta"] == [{"op": "add", "path": "/a~1b~0c", "value": [1]}]
    assert [op["op"] for op in second["delta"]] == ["add", "remove"]


@pytest.mark.proves("P-AGUI-7")
@pytest.mark.parametrize(
    ("outcome", "declares_version", "expected"),
    [
        ("completed", True, {"type": "success"}),
        ("completed", False, {"type": "success"}),
        ("cancelled", True, {"type": "cancelled"}),
        ("cancelled", False, None),
    ],
)
def test_a_turn_that_did_not_fail_finishes_its_run(
    outcome: str, declares_version: bool, expected: object
) -> None:
    log = start().add("done", outcome=outcome, usage={"input_tokens": 3, "model_calls": 1})
    end = told(log, declares_version=declares_version)[-1]
    assert (end["type"], end["runId"], end.get("outcome")) == ("RUN_FINISHED", "t1", expected)
    assert end["usage"] == [{"inputTokens": 3}]


@pytest.mark.proves("P-AGUI-7")
def test_a_limit_and_a_failure_are_errors_of_the_run() -> None:
    limited = told(start().add("done", outcome="limit", limit="tokens"))[-1]
    assert (limited["type"], limited["code"]) == ("RUN_ERROR", "limit")
    assert limited["message"] == "The agent reached a limit."
    error = {"user_message": "No more today."}
    limited = told(start().add("done", outcome="limit", error=error))[-1]
    assert limited["message"] == "No more today."
    body = {"code": "runtime_timeout", "retryable": True, "user_message": "Too slow."}
    failed = told(start().add("error", **body))[-1]
    assert failed == {"type": "RUN_ERROR", "message": "Too slow.", "code": "runtime_timeout"}
    used = told(start().add("error", **body, usage={"output_tokens": 4}))[-1]
    assert used["usage"] == [{"outputTokens": 4}]


@pytest.mark.proves("P-AGUI-8")
@pytest.mark.parametrize("reason", ["checkpoint", "draining"])
def test_a_pause_that_no_person_ends_is_not_seen(reason: str) -> None:
    log = start().tool("c1").suspend(reason, "c1").attempt(2).tool_end("c1", "succeeded")
    assert kinds(after_start(log)) == [
        "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT",
    ]  # fmt: skip


@pytest.mark.proves("P-AGUI-8")
def test_a_question_interrupts_the_run_and_the_answer_is_another_one() -> None:
    log = start().tool("c1").suspend("input_required", "c1", prompt="Pay?")
    log.attempt(2).tool_end("c1", "succeeded").add("done", outcome="completed")
    events = told(log)
    interrupt = next(e for e in events if e["type"] == "RUN_FINISHED")["outcome"]
    asked = {"id": "t1.c1", "reason": "input_required", "toolCallId": "t1.c1", "message": "Pay?"}
    assert interrupt == {"type": "interrupt", "interrupts": [asked]}
    runs = [e["runId"] for e in events if e["type"] == "RUN_STARTED"]
    assert runs == ["t1", "t1.4"]
    assert kinds(events)[-2:] == ["TOOL_CALL_RESULT", "RUN_FINISHED"]


@pytest.mark.proves("P-AGUI-7", "P-AGUI-8")
def test_no_run_ends_with_a_message_open() -> None:
    log = start().token("m1", "Let me").tool("c1").suspend("input_required", "c1")
    assert kinds(told(log))[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
    log = start().reasoning("m1", "Hm").add("error", code="x", retryable=False)
    assert kinds(told(log))[-3:] == ["REASONING_MESSAGE_END", "REASONING_END", "RUN_ERROR"]


def test_a_question_says_what_its_answer_looks_like() -> None:
    schema = '{"type":"string"}'
    log = start().tool("c1").suspend("input_required", "c1", response_schema_json=schema)
    [asked] = told(log)[-1]["outcome"]["interrupts"]
    assert asked["responseSchema"] == {"type": "string"}


@pytest.mark.proves("P-AGUI-8")
@pytest.mark.parametrize(("declares_version", "left"), [(True, ["t1.c1"]), (False, None)])
def test_a_tool_of_the_page_ends_the_run_well(
    declares_version: bool, left: list[str] | None
) -> None:
    log = start().tool("c1").suspend("client_tool", "c1")
    outcome = told(log, declares_version=declares_version)[-1]["outcome"]
    assert (outcome["type"], outcome.get("pendingToolCallIds")) == ("success", left)


@pytest.mark.parametrize("reason", ["input_required", "client_tool"])
def test_a_turn_that_waits_for_no_call_ends_its_run_well(reason: str) -> None:
    assert told(start().suspend(reason))[-1]["outcome"] == {"type": "success"}


@pytest.mark.proves("P-AGUI-8")
def test_a_turn_that_is_stopped_while_it_waits_ends_in_a_run_of_its_own() -> None:
    log = start().tool("c1").suspend("input_required", "c1").tool_end("c1", "not_executed")
    log.add("done", outcome="cancelled")
    assert kinds(told(log))[-4:] == [
        "RUN_FINISHED", "RUN_STARTED", "TOOL_CALL_RESULT", "RUN_FINISHED",
    ]  # fmt: skip


@pytest.mark.proves("P-AGUI-9", "P-EVT-3", "S32")
def test_an_attempt_that_starts_again_takes_back_what_was_not_settled() -> None:
    log = start().message("m1", "Kept").reasoning("m2", "Hm").token("m2", "Lost").attempt(2)
    events = told(log)
    assert kinds(events)[-2:] == ["TEXT_MESSAGE_END", "MESSAGES_SNAPSHOT"]
    texts = {m["id"]: m["content"] for m in events[-1]["messages"]}
    # AG-UI keeps all reasoning when a snapshot has none, so an emptied one stays in its place.
    assert texts == {"u-1": "Hi", "t1.m1": "Kept", "t1.m2.reasoning": ""}


def test_reasoning_is_taken_back_whole_where_other_reasoning_stays() -> None:
    log = start().message("m1", "A", reasoning="kept").reasoning("m2", "lost").attempt(2)
    ids = [m["id"] for m in told(log)[-1]["messages"]]
    assert ids == ["u-1", "t1.m1.reasoning", "t1.m1"]


@pytest.mark.proves("P-AGUI-9")
def test_a_message_that_is_taken_back_leaves_its_calls() -> None:
    log = start().token("m1", "Let me").tool("c1", message_id="m1").attempt(2)
    message = told(log)[-1]["messages"][-1]
    assert "content" not in message
    assert [call["id"] for call in message["toolCalls"]] == ["t1.c1"]


def test_a_message_that_was_taken_back_can_be_said_again() -> None:
    log = start().token("m1", "Lost").attempt(2).token("m1", "Found").message("m1", "Found")
    assert kinds(told(log))[-3:] == [
        "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
    ]  # fmt: skip


def test_an_attempt_that_lost_nothing_is_not_seen() -> None:
    assert after_start(start().message("m1", "Kept").attempt(2))[3:] == []


@pytest.mark.proves("P-AGUI-9", "P-SSE-11")
def test_a_rewind_leaves_what_survived_and_the_message_goes_on() -> None:
    fold = AgUiFold("thread", declares_version=True, anew=False)
    log = start().token("m1", "one ").token("m1", "two ").token("m2", "three")
    for event in log.events:
        fold.apply(event)
    events = fold.rewind(2)
    assert kinds(events) == ["TEXT_MESSAGE_END", "MESSAGES_SNAPSHOT"]
    assert [m["content"] for m in events[-1]["messages"]] == ["Hi", "one "]
    [delta] = fold.apply(Log(seq=2).token("m1", "2").events[-1])
    assert delta == {"type": "TEXT_MESSAGE_CONTENT", "messageId": "t1.m1", "delta": "2"}
    assert fold.rewind(3) == []


def test_a_message_that_a_rewind_took_away_can_begin_again() -> None:
    fold = AgUiFold("thread", declares_version=True, anew=False)
    for event in start().token("m1", "one").events:
        fold.apply(event)
    fold.rewind(1)
    assert kinds(fold.apply(Log(seq=1).token("m1", "1").events[-1]))[0] == "TEXT_MESSAGE_START"


def test_an_attempt_takes_nothing_back_that_a_rewind_has_taken() -> None:
    fold = AgUiFold("thread", declares_version=True, anew=False)
    for event in start().token("m1", "one").events:
        fold.apply(event)
    fold.rewind(1)
    assert fold.apply(Log(seq=1).attempt(2).events[-1]) == []


@pytest.mark.proves("P-AGUI-3")
def test_a_client_that_comes_back_has_nothing_left_of_what_it_showed() -> None:
    log = start().reasoning("m1", "Hm").token("m1", "Hi").add("done", outcome="completed")
    events = told(log.start_turn("t2"), anew=True)
    assert kinds(events)[:4] == [
        "RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT",
    ]  # fmt: skip
    assert [m["id"] for m in events[1]["messages"]] == ["u-1"]
    assert events[3]["messages"][-1] == {
        "id": "t1.m1.reasoning",
        "role": "reasoning",
        "content": "",
    }
    assert kinds(events).count("STATE_SNAPSHOT") == 1


@pytest.mark.proves("P-AGUI-4", "P-AGUI-5")
def test_ids_of_two_turns_never_meet() -> None:
    log = start().message("m1", "A").tool("c1").tool_end("c1", "succeeded")
    log.add("done", outcome="completed").start_turn("t2").message("m1", "B").tool("c1")
    opened = [e["messageId"] for e in told(log) if e["type"] == "TEXT_MESSAGE_START"]
    called = [e["toolCallId"] for e in told(log) if e["type"] == "TOOL_CALL_START"]
    assert (opened, called) == (["t1.m1", "t2.m1"], ["t1.c1", "t2.c1"])
    assert called[1] == name_in_thread("t2", "c1")


def test_a_log_whose_start_has_expired_still_opens_a_run() -> None:
    events = told(Log().token("m1", "late"))
    assert kinds(events)[:2] == ["RUN_STARTED", "TEXT_MESSAGE_START"]
    assert events[0]["input"]["messages"] == []


@pytest.mark.proves("P-AGUI-2")
def test_a_frame_is_one_line_of_ascii_whatever_an_agent_says() -> None:
    log = start().token("m1", "\r\n\ndata: x\n\n\u2028\ud800é")
    for event in told(log):
        framed = frame([event])
        assert framed.startswith(b"data: {") and framed.endswith(b"}\n\n")
        assert framed.count(b"\n") == 2 and b"\r" not in framed and framed.isascii()
        assert json.loads(framed[6:]) == event


def _text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_every_type_of_event_has_its_meaning() -> None:
    fold = AgUiFold("thread", declares_version=True, anew=False)
    assert fold._handlers.keys() == EVENT_TYPES
