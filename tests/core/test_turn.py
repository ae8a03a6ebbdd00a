"""One turn: attempts, withdrawal, the budget, grants, and the ends that are owed."""

from __future__ import annotations

import json

import pytest

from edge.core.event import Draft
from edge.core.turn import Turn, TurnState
from tests.core.samples import (
    AGENT,
    DENIED,
    EXECUTE,
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


def turn_after(*drafts: Draft) -> Turn:
    turn = Turn(TURN)
    for draft in drafts:
        turn.apply(draft)
    return turn


def ends(turn: Turn, *never_released: str) -> dict[str, tuple[str, str]]:
    """Return what is owed: subject -> (type, status or outcome)."""
    owed = {}
    for draft in turn.loose_ends(frozenset(never_released)):
        body = json.loads(draft.data)
        owed[draft.subject] = (draft.type, body.get("outcome") or body["status"])
    return owed


def test_the_first_attempt_brings_the_agent_and_the_policy_and_later_ones_keep_it() -> None:
    turn = turn_after(start(), start(2))
    assert (turn.agent, turn.on_disconnect, turn.pacing, turn.attempt) == (
        AGENT,
        "cancel",
        "viewer",
        2,
    )


@pytest.mark.proves("S32", "P-EVT-3")
def test_a_new_attempt_withdraws_the_text_that_was_not_settled_and_only_that() -> None:
    settled = [token("a", "m1"), message("a", "m1")]
    turn = turn_after(start(), *settled, token("b", "m2"), reasoning("c", "m3"), start(2))
    assert turn.deltas == {}
    assert ends(turn) == {}
    turn.apply(token("new", "m2"))
    assert turn.deltas == {"m2": [("token", token("new", "m2").data)]}


@pytest.mark.proves("S46", "P-RUN-10")
@pytest.mark.parametrize(
    "progressing",
    [message(), tool_start(), tool_end()],
    ids=lambda draft: draft.type,
)
def test_a_message_or_a_tool_call_gives_the_budget_back_and_nothing_else_does(
    progressing: Draft,
) -> None:
    turn = turn_after(start(), start(2), start(3), token(), progress())
    for idle in (state("k", "1"), notice(), custom(), custom(structural=False)):
        turn.apply(idle)
        assert turn.barren_attempts == 3
    turn.apply(progressing)
    assert turn.barren_attempts == 0
    turn.apply(start(4))
    assert turn.barren_attempts == 1


@pytest.mark.proves("S47")
@pytest.mark.parametrize("reason", ["input_required", "client_tool"])
def test_waiting_for_a_person_costs_nothing_and_needs_no_writer(reason: str) -> None:
    turn = turn_after(start(), tool_start(executor="client"), suspended(reason, "c1"))
    assert (turn.state, turn.barren_attempts) == (TurnState.PARKED, 0)
    assert not turn.needs_writer
    turn.decide("c1", EXECUTE)
    assert turn.needs_writer


def test_a_parked_turn_goes_on_when_the_last_call_is_decided() -> None:
    turn = turn_after(
        start(), tool_start("c1"), tool_start("c2"), suspended("input_required", "c1", "c2")
    )
    turn.decide("c1", EXECUTE)
    assert not turn.needs_writer
    turn.decide("c2", DENIED)
    assert turn.needs_writer
    assert turn.resolutions() == (("c1", EXECUTE), ("c2", DENIED))


def test_a_parked_turn_that_waits_for_nothing_named_waits_for_a_cancel() -> None:
    turn = turn_after(start(), suspended("input_required"))
    assert not turn.needs_writer
    turn.cancelled = True
    assert turn.needs_writer


@pytest.mark.parametrize("reason", ["checkpoint", "draining"])
def test_a_turn_between_attempts_needs_a_writer_and_may_run_what_waited_at_its_gate(
    reason: str,
) -> None:
    turn = turn_after(start(), tool_start("c1"), tool_start("c2"), suspended(reason, "c1"))
    assert turn.state is TurnState.BETWEEN
    assert turn.needs_writer
    assert turn.resolutions() == (("c1", EXECUTE),), "of c2 nobody knows"


@pytest.mark.proves("P-RUN-7")
def test_a_grant_is_good_for_one_attempt_only() -> None:
    turn = turn_after(start(), tool_start(), suspended("input_required", "c1"))
    turn.decide("c1", EXECUTE)
    assert turn.resolutions() == (("c1", EXECUTE),)
    turn.apply(start(2))
    assert turn.resolutions() == ()
    turn.apply(start(3))
    assert turn.resolutions() == ()
    assert ends(turn) == {"c1": ("tool_end", "unknown")}


def test_a_gate_that_a_checkpoint_let_pass_is_not_passed_again() -> None:
    turn = turn_after(start(), tool_start(), suspended("checkpoint", "c1"), start(2))
    assert turn.resolutions() == ()


def test_a_denial_is_told_until_the_call_has_its_end() -> None:
    turn = turn_after(start(), tool_start(), suspended("input_required", "c1"))
    turn.decide("c1", DENIED)
    turn.apply(start(2))
    assert turn.resolutions() == (("c1", DENIED),)
    turn.apply(start(3))
    turn.apply(tool_end(outcome="not_executed"))
    assert turn.resolutions() == ()


def test_only_a_call_that_waits_is_decided_and_only_once() -> None:
    turn = turn_after(start(), tool_start(), suspended("input_required", "c1"))
    turn.decide("c2", EXECUTE)
    turn.decide("c1", DENIED)
    turn.decide("c1", EXECUTE)
    assert turn.decisions == {"c1": DENIED}
    turn.apply(start(2))
    turn.decide("c1", EXECUTE)
    assert turn.decisions == {"c1": DENIED}


@pytest.mark.proves("P-EVT-4", "P-EVT-5")
def test_what_is_owed_at_the_end_says_no_more_than_is_known() -> None:
    turn = turn_after(
        start(),
        token("half", "m1"),
        reasoning("hm", "m2"),
        message("whole", "m3"),
        tool_start("ended"),
        tool_end("ended"),
        tool_start("released"),
        tool_start("shut"),
        tool_start("provider", executor="provider"),
        tool_start("browser", executor="client"),
        tool_start("waiting"),
        suspended("input_required", "waiting"),
    )
    assert ends(turn, "shut") == {
        "m1": ("message", "incomplete"),
        "m2": ("message", "incomplete"),
        "released": ("tool_end", "unknown"),
        "provider": ("tool_end", "unknown"),
        "shut": ("tool_end", "not_executed"),
        "browser": ("tool_end", "not_executed"),
        "waiting": ("tool_end", "not_executed"),
    }


def test_what_is_owed_settles_everything() -> None:
    turn = turn_after(start(), token(), tool_start(), tool_start("c2"))
    for draft in turn.loose_ends(frozenset()):
        turn.apply(draft)
    assert ends(turn) == {}


def test_a_call_that_is_forgotten_was_never_there() -> None:
    turn = turn_after(start(), tool_start("c1"), tool_start("c2"))
    turn.forget_call("c2")
    turn.forget_call("never there")
    assert (set(turn.calls), turn.known_calls) == ({"c1"}, {"c1"})


@pytest.mark.proves("P-EVT-1")
@pytest.mark.parametrize("terminal", [done(), failed()], ids=lambda draft: draft.type)
def test_a_terminal_event_ends_the_turn_for_every_writer(terminal: Draft) -> None:
    turn = turn_after(start(), terminal)
    turn.cancelled = True
    assert turn.finished
    assert not turn.needs_writer
