"""The shapes of bodies: every mistake is told with its place, and nothing sent is echoed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edge.web.problems import Refused
from edge.web.shapes import read_decision, read_nothing, read_turn

KEY = "k" * 16
TEXT = {"type": "text", "text": "Hi"}


def pointers(body: object) -> list[str]:
    with pytest.raises(Refused) as caught:
        read_turn(body, KEY)
    assert caught.value.code == "invalid-body"
    return [error.pointer for error in caught.value.errors]


def test_a_text_becomes_one_text_part() -> None:
    request = read_turn({"input": "Hi"}, KEY)
    assert request.input == (TEXT,)
    assert (request.agent, request.on_disconnect, request.pacing) == ("", "continue", "free")
    assert request.idempotency_key == KEY


def test_all_kinds_of_parts_and_options_are_read() -> None:
    parts = [
        TEXT,
        {"type": "file", "uri": "https://x.test/a.pdf", "media_type": "application/pdf"},
        {"type": "file", "uri": "gs://b/c", "media_type": "image/png", "name": "c.png"},
        {"type": "data", "data_json": '{"n":9007199254740992}'},
    ]
    options = {"agent": "echo", "on_disconnect": "cancel", "pacing": "viewer"}
    request = read_turn({"input": parts, **options}, KEY)
    assert list(request.input) == parts
    assert (request.agent, request.on_disconnect, request.pacing) == ("echo", "cancel", "viewer")


@pytest.mark.proves("P-HTTP-7")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ([], ["", "/input"]),
        (None, ["", "/input"]),
        ("text", ["", "/input"]),
        ({}, ["/input"]),
        ({"input": ""}, ["/input"]),
        ({"input": " \n\t"}, ["/input"]),
        ({"input": "x" * 32_001}, ["/input"]),
        ({"input": "a\0b"}, ["/input"]),
        ({"input": 1}, ["/input"]),
        ({"input": []}, ["/input"]),
        ({"input": [TEXT] * 33}, ["/input"]),
        ({"input": ["text"]}, ["/input/0/type"]),
        ({"input": [{"type": "image"}]}, ["/input/0/type"]),
        ({"input": [{"type": ["text"]}]}, ["/input/0/type"]),
        ({"input": [TEXT, {"type": "text"}]}, ["/input/1/text"]),
        ({"input": [{**TEXT, "bold": True}]}, ["/input/0"]),
        ({"input": [{"type": "text", "text": "x" * 20_000}] * 2}, ["/input"]),
        ({"input": [{"type": "file"}]}, ["/input/0/uri", "/input/0/media_type"]),
        (
            {"input": [{"type": "file", "uri": "a b", "media_type": "pdf", "name": ""}]},
            ["/input/0/uri", "/input/0/media_type", "/input/0/name"],
        ),
        ({"input": [{"type": "data", "data_json": "{"}]}, ["/input/0/data_json"]),
        ({"input": [{"type": "data", "data_json": {}}]}, ["/input/0/data_json"]),
        ({"input": "x", "agent": "../etc"}, ["/agent"]),
        ({"input": "x", "agent": None}, ["/agent"]),
        ({"input": "x", "on_disconnect": "stop"}, ["/on_disconnect"]),
        ({"input": "x", "on_disconnect": ["cancel"]}, ["/on_disconnect"]),
        ({"input": "x", "pacing": None}, ["/pacing"]),
        ({"input": "x", "inptu": "y"}, [""]),
        ({"prompt": "x", "agent": 1, "pacing": 2}, ["", "/input", "/agent", "/pacing"]),
    ],
)
def test_every_mistake_is_told_at_once_with_its_pointer(body: object, expected: list[str]) -> None:
    assert pointers(body) == expected


def test_a_refusal_echoes_nothing_that_was_sent() -> None:
    with pytest.raises(Refused) as caught:
        read_turn({"input": "hunter2\0", "hunter2": 1, "pacing": "hunter2"}, KEY)
    assert "hunter2" not in repr(caught.value.errors)


def test_the_longest_input_fits() -> None:
    assert read_turn({"input": "\U0001f600" * 32_000}, KEY).input


def test_a_repeat_is_known_by_its_meaning_and_not_by_its_spelling() -> None:
    first = read_turn(json.loads('{"input":"\\u0048i","agent":"echo"}'), KEY)
    second = read_turn(json.loads('{ "agent": "echo", "input": "Hi" }'), KEY)
    other = read_turn({"input": "Hi", "agent": "Echo"}, KEY)
    assert first.body_hash == second.body_hash != other.body_hash
    assert len(first.body_hash) == 64


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"approve": True}, {"execute": True}),
        ({"approve": False}, {"outcome": "not_executed", "reason": "DENIED"}),
        (
            {"approve": False, "reason": "No."},
            {"outcome": "not_executed", "reason": "DENIED", "user_message": "No."},
        ),
        ({"result": None}, {"outcome": "succeeded", "result_json": "null"}),
        ({"result": {"a": ["é"]}}, {"outcome": "succeeded", "result_json": '{"a":["\\u00e9"]}'}),
        (
            {"error": "Gone."},
            {"outcome": "failed", "reason": "CLIENT_ERROR", "user_message": "Gone."},
        ),
    ],
)
def test_a_decision_is_kept_as_the_log_names_it(body: object, expected: dict[str, Any]) -> None:
    decision = read_decision(body)
    assert decision.isascii()
    assert json.loads(decision) == expected


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        {"approve": 1},
        {"approve": "true"},
        {"approve": True, "reason": "x"},
        {"approve": True, "result": 1},
        {"result": 1, "error": "x"},
        {"result": 1, "reason": "x"},
        {"error": ""},
        {"error": 1},
        {"approve": False, "reason": ""},
        {"approve": True, "extra": 1},
    ],
)
def test_a_decision_that_is_not_exactly_one_is_refused(body: object) -> None:
    with pytest.raises(Refused):
        read_decision(body)


def test_a_body_without_fields_is_an_empty_object() -> None:
    read_nothing({})
    bodies: list[object] = [None, [], {"a": 1}, "x"]
    for body in bodies:
        with pytest.raises(Refused):
            read_nothing(body)
