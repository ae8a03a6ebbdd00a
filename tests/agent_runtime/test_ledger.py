"""The ledger: what a history settles, and what may run again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_runtime.errors import UnusableHistory
from agent_runtime.events import (
    Event,
    Executor,
    MessageCompleted,
    MessageStatus,
    Outcome,
    Part,
    Payload,
    Resolution,
    Safety,
    StateChange,
    StateDelta,
    SuspendReason,
    ToolCallFinished,
    ToolCallStarted,
    TurnStarted,
    TurnSuspended,
)
from agent_runtime.ledger import Ledger, Standing, open_ledger, reopen_ledger

PLAIN = ToolCallStarted(
    call_id="c1",
    tool="t",
    arguments_json="{}",
    safety=Safety.UNSAFE,
    executor=Executor.RUNTIME,
    idempotency_key="k",
    checkpoint_required=True,
)
READ = replace(PLAIN, safety=Safety.READ_ONLY)
APPROVAL = replace(PLAIN, checkpoint_required=False)
BROWSER = replace(PLAIN, executor=Executor.CLIENT, checkpoint_required=False)
ASK = replace(BROWSER, tool="ask")
SUSPENDED = TurnSuspended(reason=SuspendReason.CHECKPOINT, pending=("c1",))
RUN = Resolution(call_id="c1", finished=None)
DENIED = Resolution(
    call_id="c1", finished=ToolCallFinished(call_id="c1", outcome=Outcome.NOT_EXECUTED)
)


def started(attempt: int, text: str = "") -> Event:
    parts = (Part(text=text),) if text else ()
    return Event(payload=TurnStarted(input=parts), attempt=attempt)


def journal(*payloads: Payload | Event) -> list[Event]:
    """Only TurnStarted carries its attempt, as in an edge's journal."""
    return [p if isinstance(p, Event) else Event(payload=p, attempt=0) for p in payloads]


def standing(
    *entries: Payload | Event, attempt: int, decided: Resolution | None = None
) -> Standing:
    resolutions = [] if decided is None else [decided]
    ledger = reopen_ledger(journal(*entries), attempt=attempt, resolutions=resolutions)
    return ledger.calls["c1"].standing


@pytest.mark.parametrize(
    ("call", "decided", "crashed", "suspended"),
    [
        (PLAIN, None, Standing.IN_DOUBT, Standing.MAY_RUN),
        (READ, None, Standing.MAY_RUN, Standing.MAY_RUN),
        (APPROVAL, None, Standing.WAITING, Standing.WAITING),
        (BROWSER, None, Standing.WAITING, Standing.WAITING),
        (PLAIN, RUN, Standing.MAY_RUN, Standing.MAY_RUN),
        (APPROVAL, RUN, Standing.MAY_RUN, Standing.MAY_RUN),
        (BROWSER, RUN, Standing.WAITING, Standing.WAITING),
        (APPROVAL, DENIED, Standing.FINISHED, Standing.FINISHED),
        (PLAIN, DENIED, Standing.FINISHED, Standing.FINISHED),
    ],
)
def test_what_becomes_of_a_call_without_a_finish(
    call: ToolCallStarted, decided: Resolution | None, crashed: Standing, suspended: Standing
) -> None:
    assert standing(started(1, "x"), call, attempt=2, decided=decided) is crashed
    assert standing(started(1, "x"), call, SUSPENDED, attempt=2, decided=decided) is suspended


def test_a_call_never_ran_only_if_every_attempt_since_suspended_itself() -> None:
    attempts: list[Payload | Event] = [
        started(1, "x"),
        PLAIN,
        SUSPENDED,
        started(2),
        SUSPENDED,
        started(3),
    ]
    assert standing(*attempts[:5], attempt=3) is Standing.MAY_RUN
    assert standing(*attempts, attempt=4) is Standing.IN_DOUBT
    assert standing(*attempts, SUSPENDED, attempt=4) is Standing.MAY_RUN
    assert standing(*attempts, SUSPENDED, attempt=5) is Standing.IN_DOUBT


def test_an_approval_that_may_have_been_given_before_a_crash_is_in_doubt() -> None:
    entries: list[Payload | Event] = [started(1, "x"), APPROVAL, SUSPENDED, started(2)]
    assert standing(*entries, attempt=3) is Standing.IN_DOUBT


def test_what_is_in_doubt_is_told_as_unknown_first() -> None:
    ledger = reopen_ledger(journal(started(1, "x"), PLAIN), attempt=2)
    assert [(f.call_id, f.outcome) for f in ledger.unsettled] == [("c1", Outcome.UNKNOWN)]


def test_a_finish_in_the_history_stands_whatever_is_decided_later() -> None:
    done = ToolCallFinished(call_id="c1", outcome=Outcome.SUCCEEDED, result_json="1")
    ledger = reopen_ledger(
        journal(started(1, "x"), PLAIN, done), attempt=2, resolutions=[RUN, DENIED]
    )
    assert ledger.calls["c1"].finished == done
    assert ledger.unsettled == ()


def test_the_input_of_a_later_attempt_answers_the_oldest_open_question_once() -> None:
    second = replace(ASK, call_id="c2")
    entries = journal(started(1, "x"), ASK, second, SUSPENDED, started(2, "yes"))
    ledger = reopen_ledger(entries, attempt=2, answer=(Part(text="yes"),))
    finished = ledger.calls["c1"].finished
    assert finished is not None
    assert finished.result_json == '"yes"'
    assert ledger.calls["c2"].standing is Standing.WAITING


def test_state_is_folded_over_earlier_turns_and_kept_apart_for_the_running_one() -> None:
    def change(key: str, value: str | None) -> StateDelta:
        return StateDelta((StateChange(key, value),))

    entries = journal(
        started(1, "one"),
        change("a", "1"),
        change("b", "2"),
        started(1, "two"),
        change("b", None),
        change("a", "3"),
        started(1, "three"),
        change("a", "4"),
        change("a", "5"),
    )
    ledger = reopen_ledger(entries, attempt=2)
    assert ledger.state == {"a": "3"}
    assert ledger.turn.changes == {"a": ["4", "5"]}
    assert open_ledger(entries, ()).state == {"a": "5"}


def test_withdrawn_messages_are_no_history() -> None:
    def message(name: str, status: MessageStatus) -> MessageCompleted:
        return MessageCompleted(message_id=name, text=name, status=status)

    entries = journal(
        started(1, "x"),
        message("m1", MessageStatus.DISCARDED),
        message("m2", MessageStatus.COMPLETE),
        message("m3", MessageStatus.INCOMPLETE),
    )
    ledger: Ledger = open_ledger(entries, ())
    said = [item.message_id for item in ledger.history if isinstance(item, MessageCompleted)]
    assert said == ["m2", "m3"]


def test_a_history_without_a_start_is_unusable() -> None:
    with pytest.raises(UnusableHistory):
        reopen_ledger(journal(PLAIN, started(2)), attempt=3)


def test_a_finish_without_its_start_or_told_twice_changes_nothing() -> None:
    done = ToolCallFinished(call_id="c1", outcome=Outcome.SUCCEEDED, result_json="1")
    stray = replace(done, call_id="c9")
    twice = replace(done, outcome=Outcome.FAILED)
    ledger = reopen_ledger(journal(started(1, "x"), PLAIN, stray, done, twice), attempt=2)
    assert ledger.calls["c1"].finished == done
    assert set(ledger.calls) == {"c1"}
