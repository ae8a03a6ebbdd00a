"""The snapshot: a page that draws it sees what it would have seen from the events."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.core.event import Draft
from edge.core.snapshot import Snapshot
from tests.core.log_builder import LogBuilder
from tests.core.samples import (
    AGENT,
    TURN,
    custom,
    done,
    failed,
    message,
    notice,
    progress,
    reasoning,
    start,
    state,
    suspended,
    token,
    tool_end,
    tool_start,
)

WHOLE_TURN = [
    start(),
    reasoning("I ", "m1"),
    token("Let ", "m1"),
    token("me ", "m1"),
    message("Let me ", "m1"),
    tool_start("c1"),
    progress("c1", "half"),
    progress("c1", "most"),
    tool_end("c1"),
    state("k", "1"),
    state("gone", "2"),
    state("gone", None),
    notice("slow"),
    custom("chart"),
    token("Done.", "m2"),
    message("Done.", "m2"),
    done(),
]


def snapshot_of(log: LogBuilder) -> dict[str, Any]:
    snapshot = Snapshot("s1")
    snapshot.apply(log.records)
    return snapshot.as_json()


def snapshot_after(*drafts: Draft) -> dict[str, Any]:
    log = LogBuilder()
    log.acquire()
    for draft in drafts:
        log.write(draft)
    return snapshot_of(log)


def items_after(*drafts: Draft) -> list[dict[str, Any]]:
    items = snapshot_after(*drafts)["turns"][-1]["items"]
    assert isinstance(items, list)
    return items


@pytest.mark.proves("S31", "P-EVT-2")
def test_a_whole_turn_is_drawn_as_its_settled_items_in_order() -> None:
    turn = snapshot_after(*WHOLE_TURN)["turns"][0]
    assert (turn["turn_id"], turn["agent"], turn["attempt"]) == (TURN, AGENT, 1)
    assert (turn["state"], turn["outcome"]) == ("finished", "completed")
    assert turn["input"] == [{"type": "text", "text": "hello"}]
    said, called, noticed, drawn, ended = turn["items"]
    assert (said["parts"][0]["text"], said["status"]) == ("Let me ", "complete")
    assert (called["outcome"], called["progress"]["message"]) == ("succeeded", "most")
    assert noticed == {"type": "notice", "error": {"reason": "slow"}}
    assert drawn == {"type": "custom", "name": "chart", "value_json": "1"}
    assert ended["parts"][0]["text"] == "Done."


@pytest.mark.proves("S31")
def test_what_is_said_asked_and_restated_is_drawn_once_with_one_question() -> None:
    said = [token("Shall I?"), message("Shall I?"), tool_start(executor="client")]
    waiting = snapshot_after(start(), *said, suspended("input_required", "c1"))["turns"][0]
    assert [item["type"] for item in waiting["items"]] == ["message", "tool_call"]
    assert waiting["suspended"]["pending_call_ids"] == ["c1"]
    again = [start(2), suspended("input_required", "c1")]  # another attempt asks the same
    asked = snapshot_after(start(), *said, suspended("input_required", "c1"), *again)["turns"][0]
    assert asked["items"] == waiting["items"]
    assert asked["suspended"]["pending_call_ids"] == ["c1"]


@pytest.mark.proves("T44", "P-HTTP-9")
def test_a_snapshot_says_the_cursor_that_it_ends_at_and_what_is_kept() -> None:
    assert snapshot_of(LogBuilder())["cursor"] == "0-0"
    log = LogBuilder()
    log.acquire()
    log.write(*WHOLE_TURN)
    log.acquire("edge-b")
    assert snapshot_of(log)["cursor"] == "1-17"
    log.write(start(turn_id="t2"))
    drawn = snapshot_of(log)
    assert (drawn["cursor"], drawn["first_seq"], drawn["session_id"]) == ("2-18", 1, "s1")


def test_text_that_streams_is_drawn_as_far_as_it_is_committed() -> None:
    assert items_after(start(), token("Let "), reasoning("hm"), token("me")) == [
        {
            "type": "message",
            "message_id": "m1",
            "status": "streaming",
            "text": "Let me",
            "reasoning": "hm",
        }
    ]


@pytest.mark.proves("S25", "P-EVT-3")
def test_a_new_attempt_withdraws_streaming_text_and_leaves_the_rest() -> None:
    kept = [token("a", "m1"), message("a", "m1"), tool_start(), notice()]
    items = items_after(start(), *kept, token("gone", "m2"), start(2), token("new", "m2"))
    assert [item["type"] for item in items] == ["message", "tool_call", "notice", "message"]
    assert items[-1]["text"] == "new"


def test_the_input_stays_when_a_later_attempt_does_not_repeat_it() -> None:
    turn = snapshot_after(start(), start(2))["turns"][0]
    assert turn["input"] == [{"type": "text", "text": "hello"}]
    assert (turn["attempt"], turn["state"]) == (2, "running")


def test_state_is_what_the_newest_changes_left_of_it() -> None:
    assert snapshot_after(start(), state("a", "1"), state("a", "2"), state("b", "3"))["state"] == {
        "a": "2",
        "b": "3",
    }


def test_a_suspended_turn_says_what_it_waits_for_until_it_goes_on() -> None:
    waits = [start(), tool_start(executor="client"), suspended("client_tool", "c1")]
    turn = snapshot_after(*waits)["turns"][0]
    assert turn["state"] == "suspended"
    assert turn["suspended"] == {"reason": "client_tool", "pending_call_ids": ["c1"]}
    turn = snapshot_after(*waits, start(2))["turns"][0]
    assert turn["state"] == "running"
    assert "suspended" not in turn


@pytest.mark.proves("S54", "S55")
def test_a_stopped_turn_is_drawn_as_stopping_and_then_as_stopped_with_its_text() -> None:
    log = LogBuilder()
    log.acquire()
    log.write(start(), token("half"))
    log.cancel()
    assert snapshot_of(log)["turns"][0]["state"] == "cancelling"
    log.write(message("half", status="incomplete"), done("cancelled"))
    turn = snapshot_of(log)["turns"][0]
    assert (turn["state"], turn["outcome"]) == ("finished", "cancelled")
    assert turn["items"][0]["status"] == "incomplete"
    log.cancel()
    log.cancel("unknown")
    assert snapshot_of(log)["turns"][0]["state"] == "finished"


def test_a_failed_turn_is_drawn_with_its_code() -> None:
    turn = snapshot_after(start(), failed("runtime_error"))["turns"][0]
    assert (turn["state"], turn["outcome"], turn["code"]) == ("finished", "failed", "runtime_error")


@pytest.mark.proves("P-EVT-7")
def test_what_is_private_is_not_drawn() -> None:
    assert "viewer" not in str(snapshot_after(*WHOLE_TURN))


def test_a_turn_whose_start_has_expired_is_left_out_and_the_state_is_not() -> None:
    log = LogBuilder()
    log.acquire()
    log.write(start(), token())
    log.write(message(), state("k", "1"), done())
    log.write(start(turn_id="t2"))
    snapshot = Snapshot("s1")
    snapshot.apply(log.records[2:])
    drawn = snapshot.as_json()
    assert [turn["turn_id"] for turn in drawn["turns"]] == ["t2"]
    assert drawn["state"] == {"k": "1"}
    assert drawn["first_seq"] == 3


@settings(max_examples=60)
@given(cuts=st.lists(st.integers(1, len(WHOLE_TURN) - 1), unique=True), pages=st.integers(1, 4))
def test_how_events_are_packed_into_records_and_records_into_pages_makes_no_difference(
    cuts: list[int], pages: int
) -> None:
    log = LogBuilder()
    log.acquire()
    bounds = [0, *sorted(cuts), len(WHOLE_TURN)]
    for begin, end in pairwise(bounds):
        log.write(*WHOLE_TURN[begin:end])
    snapshot = Snapshot("s1")
    for page in range(0, len(log.records), pages):
        snapshot.apply(log.records[page : page + pages])
    assert snapshot.as_json() == snapshot_after(*WHOLE_TURN)
