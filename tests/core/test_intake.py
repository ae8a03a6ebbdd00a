"""The intake: what of a runtime's events enters the log, and what ends its turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edge.core.event import Draft
from edge.core.intake import DROP, PROTOCOL_ERROR, TOO_LARGE, Intake
from edge.core.turn import Turn
from tests.core.samples import (
    TURN,
    done,
    message,
    progress,
    start,
    state,
    token,
    tool_end,
    tool_start,
)

LIMIT_BYTES = 1_000


def intake_after(*drafts: Draft) -> tuple[Intake, Turn]:
    turn = Turn(TURN)
    for draft in drafts:
        turn.apply(draft)
    return Intake(turn, LIMIT_BYTES), turn


@pytest.mark.parametrize(
    "draft",
    [token(), message(), state("k", "1"), tool_start("c2"), tool_end(), progress(), done()],
    ids=lambda draft: draft.type,
)
def test_what_keeps_the_protocol_is_let_in(draft: Draft) -> None:
    intake, _ = intake_after(start(), tool_start("c1"))
    assert intake.refuses(draft) is None


def test_a_call_is_started_once_and_ended_once() -> None:
    intake, turn = intake_after(start(), tool_start("c1"))
    assert intake.refuses(tool_start("c1")) == PROTOCOL_ERROR
    assert intake.refuses(tool_end("c2")) == PROTOCOL_ERROR
    turn.apply(tool_end("c1"))
    assert intake.refuses(tool_end("c1")) == PROTOCOL_ERROR
    assert intake.refuses(tool_start("c1")) == PROTOCOL_ERROR


@pytest.mark.proves("P-EVT-8", "S78")
def test_an_event_may_be_as_large_as_the_limit_with_what_is_private_of_it() -> None:
    intake, _ = intake_after(start())
    plain = message()
    full = replace(plain, private="p" * (LIMIT_BYTES - len(plain.data)))
    assert intake.refuses(full) is None
    assert intake.refuses(replace(full, private=full.private + "p")) == TOO_LARGE
    assert intake.refuses(replace(full, data=full.data + " ")) == TOO_LARGE


@pytest.mark.proves("P-EVT-1")
def test_nothing_is_let_in_after_the_end() -> None:
    intake, _ = intake_after(start(), tool_start(), done())
    for draft in (token(), tool_end(), done(), tool_start("c2"), token("x" * LIMIT_BYTES)):
        assert intake.refuses(draft) == DROP


@pytest.mark.proves("P-HTTP-11")
def test_no_call_starts_in_a_cancelled_turn_and_nothing_more_is_heard_of_it() -> None:
    intake, turn = intake_after(start(), tool_start("c1"))
    turn.cancelled = True
    for draft in (tool_start("c2"), progress("c2"), tool_end("c2")):
        assert intake.refuses(draft) == DROP
    for draft in (progress("c1"), tool_end("c1"), token(), message(), done()):
        assert intake.refuses(draft) is None


def test_nothing_more_is_heard_of_a_call_that_was_taken_back() -> None:
    intake, _ = intake_after(start())
    intake.take_back("c1")
    assert intake.refuses(progress("c1")) == DROP
    assert intake.refuses(tool_end("c1")) == DROP
    assert intake.refuses(message(message_id="c1")) is None, "a message may share the name"
