"""The events that the edge writes itself."""

from __future__ import annotations

import json

from edge.core import drafts
from tests.core.samples import AGENT, TURN, reasoning, start, token


def test_a_message_cut_short_restates_what_was_shown_of_it() -> None:
    said = [token("Let "), reasoning("I see. "), token('me "look"\n'), reasoning("So.")]
    draft = drafts.message_cut_short(TURN, "m1", [(d.type, d.data) for d in said])
    assert json.loads(draft.data) == {
        "turn_id": TURN,
        "message_id": "m1",
        "role": "agent",
        "parts": [{"type": "text", "text": 'Let me "look"\n'}],
        "reasoning": "I see. So.",
        "status": "incomplete",
    }
    assert (draft.type, draft.subject, draft.structural) == ("message", "m1", True)


def test_a_message_of_no_text_is_cut_short_without_a_part() -> None:
    only_thought = [(d.type, d.data) for d in [reasoning("hm")]]
    assert json.loads(drafts.message_cut_short(TURN, "m1", only_thought).data)["parts"] == []
    only_text = [(d.type, d.data) for d in [token("hi")]]
    assert "reasoning" not in json.loads(drafts.message_cut_short(TURN, "m1", only_text).data)


def test_the_input_and_the_policy_ride_in_the_first_attempt_and_the_policy_is_private() -> None:
    first, second = start(1), start(2)
    assert json.loads(first.data)["input"] == [{"type": "text", "text": "hello"}]
    assert json.loads(first.private) == {"on_disconnect": "cancel", "pacing": "viewer"}
    assert "viewer" not in first.data
    assert json.loads(second.data) == {"turn_id": TURN, "attempt": 2, "agent": AGENT}
    assert second.private == ""


def test_a_message_that_its_client_has_named_keeps_its_name() -> None:
    words = [{"type": "text", "text": "Hi"}]
    draft = drafts.turn_start("t", "a", attempt=1, user_input=words, message_id="u-1")
    assert json.loads(draft.data)["message_id"] == "u-1"
    assert "message_id" not in drafts.turn_start("t", "a", attempt=1, user_input=words).data


def test_an_end_that_the_edge_writes_says_why_and_that_repeating_is_no_use() -> None:
    end = json.loads(drafts.tool_end(TURN, "c1", "unknown", "OUTCOME_UNKNOWN").data)
    assert end["outcome"] == "unknown"
    assert end["error"] == {"reason": "OUTCOME_UNKNOWN", "retryable": False}


def test_an_end_of_a_turn_is_one_of_the_terminal_shapes() -> None:
    assert json.loads(drafts.cancelled(TURN).data) == {"turn_id": TURN, "outcome": "cancelled"}
    failed = drafts.failed(TURN, "runtime_error", retryable=True)
    assert failed.type == "error"
    assert json.loads(failed.data) == {
        "turn_id": TURN,
        "code": "runtime_error",
        "retryable": True,
    }
