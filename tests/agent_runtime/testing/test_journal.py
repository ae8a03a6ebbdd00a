"""What the journal in memory tells the next attempt of calls without an end."""

from __future__ import annotations

import pytest

from agent_runtime.events import (
    Event,
    Executor,
    Part,
    Payload,
    Safety,
    SuspendReason,
    ToolCallStarted,
    TurnFinished,
    TurnOutcome,
    TurnSuspended,
)
from agent_runtime.ledger import Standing
from agent_runtime.testing.journal import Journal

GATED = ToolCallStarted(
    call_id="c1",
    tool="charge",
    arguments_json="{}",
    safety=Safety.UNSAFE,
    executor=Executor.RUNTIME,
    idempotency_key="k",
    checkpoint_required=True,
)
SUSPENDED = TurnSuspended(reason=SuspendReason.DRAINING, pending=("c1",))


def begun(*payloads: Payload, opened: bool = False) -> Journal:
    journal = Journal((Part(text="x"),))
    journal.begin()
    for payload in payloads:
        journal.commit(Event(payload=payload, attempt=1))
    if opened:
        journal.open_gate("c1")
    return journal


def standing(journal: Journal) -> Standing:
    _, ledger = journal.begin()
    return ledger.calls["c1"].standing


@pytest.mark.parametrize(
    ("opened", "expected"), [(False, Standing.MAY_RUN), (True, Standing.IN_DOUBT)]
)
def test_a_lost_call_may_run_only_if_its_gate_stayed_shut(
    *, opened: bool, expected: Standing
) -> None:
    assert standing(begun(GATED, opened=opened)) is expected


@pytest.mark.proves("P-RUN-7")
def test_a_permission_that_was_not_used_is_given_again_only_by_a_suspension() -> None:
    journal = begun(GATED)
    assert standing(journal) is Standing.MAY_RUN
    journal.commit(Event(payload=SUSPENDED, attempt=2))
    assert standing(journal) is Standing.MAY_RUN
    assert standing(journal) is Standing.IN_DOUBT


def test_history_is_what_an_edge_keeps() -> None:
    journal = begun(GATED, SUSPENDED)
    journal.begin()
    assert [(type(event.payload).__name__, event.attempt) for event in journal.history] == [
        ("TurnStarted", 1),
        ("ToolCallStarted", 0),
        ("TurnSuspended", 0),
        ("TurnStarted", 2),
    ]


def test_a_finished_turn_needs_no_attempt() -> None:
    assert begun(GATED).needs_attempt({})
    assert begun(SUSPENDED).needs_attempt({})
    assert not begun(TurnFinished(outcome=TurnOutcome.COMPLETED)).needs_attempt({})
