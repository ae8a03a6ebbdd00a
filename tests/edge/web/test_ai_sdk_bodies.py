"""What the AI SDK's client posts: which turn a message asks for, and what of it is decided."""

from __future__ import annotations

from typing import Any

import pytest

from edge.web.ai_sdk_bodies import decisions, read_chat, turn_request
from edge.web.problems import Refused

Body = dict[str, Any]


def posted(text: str = "Hi", message_id: str = "message-1", **more: Any) -> Body:
    parts = [{"type": "text", "text": text}]
    message = {"id": message_id, "role": "user", "parts": parts}
    return {"id": "chat", "messages": [message], **more}


def key(body: Body, instead_of: str = "") -> str:
    return turn_request(read_chat(body), instead_of).idempotency_key


def decided(*parts: Body) -> Body:
    return {"id": "chat", "messages": [{"id": "m", "role": "assistant", "parts": list(parts)}]}


@pytest.mark.proves("P-AI-2", "P-AI-3")
def test_a_message_is_told_apart_by_its_id_its_content_and_what_it_replaces() -> None:
    assert key(posted()) == key(posted(trigger="regenerate-message"))
    others = [key(posted("More")), key(posted(message_id="message-2")), key(posted(), "turn-1")]
    assert len({key(posted()), *others}) == 4


def test_an_option_that_is_null_is_none() -> None:
    turn = turn_request(read_chat(posted(agent=None, pacing=None)))
    assert (turn.agent, turn.pacing) == ("", "free")


def test_a_file_is_taken_by_its_address_and_may_have_a_name() -> None:
    kit = {"type": "file", "url": "https://a.example/x", "mediaType": "image/png"}
    message = {"id": "m", "role": "user", "parts": [kit | {"filename": "x.png"}, kit]}
    turn = turn_request(read_chat({"id": "chat", "messages": [message]}))
    file = {"type": "file", "uri": "https://a.example/x", "media_type": "image/png"}
    assert turn.input == (file | {"name": "x.png"}, file)


@pytest.mark.proves("P-AI-10")
def test_only_calls_that_wait_are_decided() -> None:
    found = {"state": "output-available", "output": 1}
    chat = read_chat(decided(*({"toolCallId": c, **found} for c in ("c1", "c2", 7, ["c1"]))))
    assert decisions(chat, ["c1"]).keys() == {"c1"}


@pytest.mark.proves("P-AI-10")
@pytest.mark.parametrize("approval", ["yes", None, {"approved": "yes"}, {"reason": "No"}])
def test_nothing_but_a_plain_yes_or_no_is_an_approval(approval: object) -> None:
    part = {"toolCallId": "c1", "state": "approval-responded", "approval": approval}
    with pytest.raises(Refused):
        decisions(read_chat(decided(part)), ["c1"])


@pytest.mark.parametrize("output", [float("nan"), "\ud800", [2**60]])
def test_an_output_that_no_reader_reads_alike_is_refused(output: object) -> None:
    part = {"toolCallId": "c1", "state": "output-available", "output": output}
    with pytest.raises(Refused) as caught:
        decisions(read_chat(decided(part)), ["c1"])
    assert caught.value.code == "invalid-json"
