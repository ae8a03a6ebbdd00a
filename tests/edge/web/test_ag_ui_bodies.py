"""What AG-UI's clients post: only its end counts, and it is read strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edge.web.ag_ui_bodies import Answer, decision, read_run, turn_request
from edge.web.problems import Refused

Body = dict[str, Any]


def body(*messages: Body, **more: Any) -> Body:
    return {"threadId": "thread", "runId": "run-1", "messages": list(messages), **more}


def user(content: Any, message_id: str = "u-1") -> Body:
    return {"id": message_id, "role": "user", "content": content}


def tool(call_id: str, content: Any, **more: str) -> Body:
    return {"id": f"m-{call_id}", "role": "tool", "toolCallId": call_id, "content": content, **more}


@pytest.mark.proves("P-AGUI-1")
def test_only_the_last_message_is_new_input() -> None:
    run = read_run(body(user("old", "u-0"), {"role": "assistant", "id": "a"}, user("new")))
    turn = turn_request(run, "default")
    assert turn.input == ({"type": "text", "text": "new"},)
    assert (turn.message_id, turn.agent) == ("u-1", "")


@pytest.mark.proves("P-AGUI-1")
def test_the_key_of_a_turn_is_its_runs() -> None:
    first, again = (turn_request(read_run(body(user("Hi"))), "a") for _ in range(2))
    other = turn_request(read_run(body(user("Hi"), runId="run-2")), "a")
    assert first == again
    assert first.agent == "a"
    assert other.idempotency_key != first.idempotency_key


def test_a_page_can_choose_the_policy_of_a_turn() -> None:
    props = {"on_disconnect": "cancel", "theme": "dark"}
    turn = turn_request(read_run(body(user("Hi"), forwardedProps=props)), "default")
    assert (turn.on_disconnect, turn.pacing) == ("cancel", "free")
    assert read_run(body(user("Hi"), forwardedProps=["pacing"])).options == {}


@pytest.mark.parametrize(
    "part",
    [
        {
            "type": "image",
            "source": {"type": "url", "value": "https://a.example/x", "mimeType": "image/png"},
        },
        {"type": "binary", "url": "https://a.example/x", "mimeType": "image/png"},
    ],
)
def test_a_file_is_taken_by_its_address(part: Body) -> None:
    turn = turn_request(read_run(body(user([{"type": "text", "text": "See"}, part]))), "default")
    file = {"type": "file", "uri": "https://a.example/x", "media_type": "image/png"}
    assert turn.input == ({"type": "text", "text": "See"}, file)


def test_a_file_may_have_a_name_and_need_not_say_what_it_is() -> None:
    part = {"type": "binary", "url": "https://a.example/x", "filename": "x.bin"}
    [file] = turn_request(read_run(body(user([part]))), "default").input
    assert (file["name"], file["media_type"]) == ("x.bin", "application/octet-stream")


@pytest.mark.parametrize("source", [None, {"type": "data", "value": "https://a.example/x"}])
def test_a_file_that_is_not_told_by_its_address_is_refused_where_it_stands(source: object) -> None:
    with pytest.raises(Refused) as caught:
        turn_request(read_run(body(user([{"type": "image", "source": source}]))), "default")
    assert [error.pointer for error in caught.value.errors] == ["/messages/-/content/-"]


def test_a_client_of_before_1_0_does_not_declare_its_version() -> None:
    assert not read_run(body()).declares_version
    assert not read_run(body(protocolVersion=None)).declares_version
    assert read_run(body(protocolVersion="1.0")).declares_version


@pytest.mark.proves("P-AGUI-10")
def test_answers_are_entries_of_resume_and_the_messages_of_tools_at_the_end() -> None:
    old, new = tool("t1.c1", "1"), [tool("t1.c2", '{"n":2}'), tool("t1.c3", "words")]
    failed = tool("t1.c4", "", error="No camera.")
    entry = {"interruptId": "t1.c5", "status": "cancelled"}
    run = read_run(body(old, {"role": "assistant"}, *new, failed, resume=[entry]))
    assert run.results == {
        "t1.c2": Answer({"n": 2}),
        "t1.c3": Answer("words"),
        "t1.c4": Answer(failure="No camera."),
    }
    assert run.resume == {"t1.c5": Answer(denied=True)}


@pytest.mark.parametrize("error", [" ", "", None, True])
def test_an_error_without_words_is_none(error: Any) -> None:
    run = read_run(body(tool("t1.c1", "1", error=error)))
    assert run.results == {"t1.c1": Answer(1)}


def test_content_that_no_encoding_can_hold_is_kept_as_text_and_refused_as_a_result() -> None:
    [answer] = read_run(body(tool("t1.c1", "\ud800"))).results.values()
    assert answer == Answer("\ud800")


@pytest.mark.proves("P-AGUI-10")
@pytest.mark.parametrize(
    "content", ["words", "NaN", "1e999", "12345678901234567890", '{"a":1,"a":2}', "[" * 100_000]
)
def test_content_that_is_no_strict_json_is_a_result_as_text(content: str) -> None:
    [answer] = read_run(body(tool("t1.c1", content))).results.values()
    assert json.loads(json.loads(decision(answer, "client"))["result_json"]) == content


@pytest.mark.proves("P-AGUI-10")
@pytest.mark.parametrize(
    ("answer", "executor", "expected"),
    [
        (Answer({"approved": True, "reason": "Go on."}), "runtime", {"execute": True}),
        (
            Answer({"approved": False, "reason": "No."}),
            "runtime",
            {"outcome": "not_executed", "reason": "DENIED", "user_message": "No."},
        ),
        (Answer(denied=True), "client", {"outcome": "not_executed", "reason": "DENIED"}),
        (
            Answer({"approved": True}),
            "client",
            {"outcome": "succeeded", "result_json": '{"approved":true}'},
        ),
        (Answer(), "client", {"outcome": "succeeded", "result_json": "null"}),
        (
            Answer(failure="No camera."),
            "client",
            {"outcome": "failed", "reason": "CLIENT_ERROR", "user_message": "No camera."},
        ),
    ],
)
def test_an_answer_means_leave_or_a_result_by_who_runs_the_call(
    answer: Answer, executor: str, expected: Body
) -> None:
    assert json.loads(decision(answer, executor)) == expected


@pytest.mark.proves("P-AGUI-10")
@pytest.mark.parametrize("value", [None, True, "yes", {}, {"approved": "yes"}, {"approve": True}])
def test_nothing_but_a_plain_yes_lets_a_tool_run(value: object) -> None:
    with pytest.raises(Refused):
        decision(Answer(value), "runtime")


NOT_STRICT = [float("inf"), float("nan"), "\ud800", [2**60], json.loads("[" * 500 + "]" * 500)]


@pytest.mark.parametrize("value", NOT_STRICT, ids=lambda value: str(value)[:9])
def test_what_no_reader_reads_alike_is_refused(value: object) -> None:
    with pytest.raises(Refused):
        decision(Answer(value), "client")


@pytest.mark.parametrize(
    ("answer", "executor"),
    [
        (Answer(failure="\ud800"), "client"),
        (Answer({"approved": False, "reason": "\ud800"}), "runtime"),
    ],
)
def test_words_of_an_answer_that_no_encoding_can_hold_are_refused(
    answer: Answer, executor: str
) -> None:
    with pytest.raises(Refused) as caught:
        decision(answer, executor)
    assert caught.value.code == "invalid-json"


def test_words_of_the_user_that_no_encoding_can_hold_are_refused_and_a_runs_id_is_not() -> None:
    assert turn_request(read_run(body(user("Hi"), runId="\ud800")), "default").idempotency_key
    with pytest.raises(Refused) as caught:
        turn_request(read_run(body(user("\ud800"))), "default")
    assert caught.value.code == "invalid-json"


BAD = [
    [],
    {},
    body(threadId=""),
    body(threadId=7),
    body(threadId="a\0b"),
    body(runId="x" * 256),
    body(messages={}),
    body("Hi"),  # type: ignore[arg-type]
    body(resume={}),
    body(resume=[{"interruptId": "t.c"}]),
    body(resume=[{"status": "resolved"}]),
    body(tool("", "1")),
]


@pytest.mark.parametrize("posted", BAD)
def test_a_body_of_another_shape_is_refused(posted: object) -> None:
    with pytest.raises(Refused) as caught:
        read_run(posted)
    assert caught.value.code == "invalid-body"


NO_INPUT = [
    body(),
    body({"role": "assistant", "id": "a", "content": "Hi"}),
    body(user("")),
    body(user([])),
    body(user(None)),
    body(user("Hi", message_id="")),
    body(user([{"type": "image", "source": {"type": "data", "value": "AA", "mimeType": "a/b"}}])),
    body(user([{"type": "image"}])),
    body(user("Hi"), forwardedProps={"pacing": "slow"}),
]


@pytest.mark.parametrize("posted", NO_INPUT)
def test_a_run_without_something_new_is_refused(posted: Body) -> None:
    with pytest.raises(Refused) as caught:
        turn_request(read_run(posted), "default")
    assert caught.value.code == "invalid-body"
