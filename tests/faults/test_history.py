"""The history checker finds every fault that is planted into a good history, one for each rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from edge.core.event import Event, compact_json
from edge.core.log import Acquire, AnyRecord, Cancel, Events, Resolve
from tests.support.checker import violations
from tests.support.history import (
    Cleared,
    ClientLog,
    Heard,
    History,
    Kind,
    Rewound,
)

KEY = "s1/t1/c1"
FAR_MS = 4_102_444_800_000


def event(epoch: int, seq: int, kind: str, **members: object) -> Event:
    call = "c1" if kind.startswith("tool") else ""
    private = compact_json({"idempotency_key": KEY}) if kind == "tool_start" else ""
    data = compact_json({"turn_id": "t1", **members})
    return Event(epoch, seq, kind, data, call, kind != "token", private)


def record(slot: int, *events: Event, writer: str = "A") -> Events:
    return Events(
        slot=slot,
        epoch=events[0].epoch,
        writer=writer,
        last_seq=events[-1].seq,
        expire_at_ms=FAR_MS,
        acquire_slot=1,
        events=events,
    )


def acquire(slot: int, epoch: int, last_seq: int, writer: str) -> Acquire:
    starts = ((1, 1), (2, last_seq + 1))[:epoch]
    return Acquire(
        slot=slot,
        epoch=epoch,
        writer=writer,
        last_seq=last_seq,
        expire_at_ms=FAR_MS,
        epoch_starts=starts,
    )


def cancel(slot: int, last_seq: int) -> Cancel:
    return Cancel(
        slot=slot, epoch=2, writer="B", last_seq=last_seq, expire_at_ms=FAR_MS, turn_id="t1"
    )


def decided() -> Resolve:
    return Resolve(
        slot=5,
        epoch=2,
        writer="B",
        last_seq=4,
        expire_at_ms=FAR_MS,
        turn_id="t1",
        call_id="c1",
        decision="{}",
    )


START = event(1, 1, "turn_start", attempt=1)
TOKEN = event(1, 2, "token", message_id="m1", text="a")
AGAIN = event(2, 3, "turn_start", attempt=2)
CALL = event(2, 4, "tool_start", name="append_note")
END = event(2, 5, "tool_end", outcome="succeeded")
DONE = event(2, 6, "done", outcome="cancelled")
LOST = Heard(1, 3, "token", "never committed")


def log() -> list[AnyRecord]:
    """A turn of two epochs: its first owner dies amid the text, its second is told to stop."""
    return [
        acquire(1, 1, 0, "A"),
        record(2, START, TOKEN),
        acquire(3, 2, 2, "B"),
        record(4, AGAIN, CALL, END, writer="B"),
        cancel(5, 5),
        record(6, DONE, writer="B"),
    ]


def heard(*events: Event) -> list[Heard]:
    return [Heard(e.epoch, e.seq, e.type, e.data) for e in events]


def client() -> ClientLog:
    """One that was shown a token of the dead owner, and told to drop it."""
    return ClientLog(
        "client", [*heard(START, TOKEN), LOST, Rewound(2), *heard(AGAIN, CALL, END, DONE)]
    )


def good() -> History:
    return History(
        records=log(),
        clients=[client()],
        rows=[{"key": KEY}],
        posts=[("k", "t1")],
        cancels=["t1"],
        late_cancels=[("t1", 6)],
        over=True,
    )


def test_a_good_history_breaks_nothing() -> None:
    assert violations(good()) == []


def test_a_client_that_was_cleared_starts_where_it_is_told() -> None:
    late = ClientLog("late", [*heard(START), Cleared(3), *heard(AGAIN, CALL, END, DONE)])
    assert violations(replace(good(), clients=[late])) == []


def test_a_client_that_left_ahead_of_the_log_is_not_judged_by_its_screen() -> None:
    ahead = ClientLog("ahead", [*heard(START, TOKEN), LOST], settled=False)
    assert violations(replace(good(), clients=[ahead])) == []


def test_what_is_not_over_may_lack_its_end() -> None:
    early = ClientLog("early", [*heard(START, TOKEN)])
    begun = replace(good(), records=log()[:5], late_cancels=[], clients=[early], over=False)
    assert violations(begun) == []


def parked(reason: str, *more: AnyRecord) -> History:
    """One whose turn was suspended, and then left."""
    asked = event(2, 4, "suspended", reason=reason, pending_call_ids=["c1"])
    records = [*log()[:3], record(4, AGAIN, asked, writer="B"), *more]
    return History(records=records, posts=[("k", "t1")], over=True)


def test_a_turn_that_waits_for_a_person_may_lack_its_end() -> None:
    assert violations(parked("input_required")) == []


@pytest.mark.parametrize(
    "left",
    [parked("checkpoint"), parked("client_tool", cancel(5, 4)), parked("client_tool", decided())],
)
def test_a_turn_that_waits_for_nobody_must_go_on(left: History) -> None:
    assert [str(v) for v in violations(left)] == ["lost: turn t1 was acknowledged and never ended"]


@pytest.mark.parametrize("entries", [[], [Cleared(7)]])
def test_a_client_that_comes_when_all_is_told_shows_nothing(entries: list[Cleared]) -> None:
    late = ClientLog("late", [*entries], after=6)
    assert violations(replace(good(), clients=[late])) == []


def with_records(*records: AnyRecord) -> History:
    return replace(good(), records=records)


def with_entries(*entries: Heard | Rewound | Cleared) -> History:
    return replace(good(), clients=[ClientLog("client", list(entries))])


def late_tool_start() -> History:
    quiet = record(
        4, AGAIN, event(2, 4, "token", text="x"), event(2, 5, "token", text=""), writer="B"
    )
    late = replace(CALL, seq=6), replace(END, seq=7), replace(DONE, seq=8)
    ahead = [*log()[:3], quiet, cancel(5, 5), record(6, *late, writer="B")]
    return replace(good(), records=ahead, clients=[])


def without_a_gap_between_owners() -> History:
    """An old owner's write lands behind its successor's."""
    return with_records(*log()[:3], record(4, event(1, 3, "token", text="b"), writer="A"))


FAULTS: dict[str, tuple[Callable[[], History], Kind, str]] = {
    "a hole in the log": (
        lambda: with_records(*log()[:3], *log()[4:]),
        Kind.FORKED,
        "the log is broken",
    ),
    "a fenced writer": (without_a_gap_between_owners, Kind.FORKED, "the log is broken"),
    "a log that lost its beginning": (
        lambda: with_records(*log()[1:]),
        Kind.LOST,
        "begins at slot 2",
    ),
    "one id with two contents": (
        lambda: with_entries(*heard(START, replace(TOKEN, data='{"turn_id":"t1","text":"b"}'))),
        Kind.FORKED,
        "is not what others know by that id",
    ),
    "a gap": (lambda: with_entries(*heard(START, AGAIN)), Kind.LOST, "came where seq 2 was due"),
    "an event twice": (
        lambda: with_entries(*heard(START, START)),
        Kind.DUPLICATED,
        "came where seq 2 was due",
    ),
    "an event out of order": (
        lambda: with_entries(*heard(TOKEN, START)),
        Kind.REORDERED,
        "1-1 came where seq 3 was due",
    ),
    "a beginning that was left out": (
        lambda: replace(good(), clients=[ClientLog("client", [*heard(TOKEN)], after=0)]),
        Kind.LOST,
        "1-2 came where seq 1 was due",
    ),
    "an event behind the end of its turn": (
        lambda: with_records(*log(), record(7, event(2, 7, "token", text="b"), writer="B")),
        Kind.REORDERED,
        "follows the end of its turn",
    ),
    "two keys for one turn": (
        lambda: replace(good(), posts=[("k", "t1"), ("l", "t1")]),
        Kind.LOST,
        "two keys for the turn t1",
    ),
    "a call that starts twice": (
        lambda: with_records(*log()[:4], record(5, replace(CALL, seq=6), writer="B")),
        Kind.TOOL_TWICE,
        "c1 starts 2 times",
    ),
    "two calls with one key": (
        lambda: with_records(*log()[:4], record(5, replace(CALL, seq=6, subject="c2"), writer="B")),
        Kind.OTHER,
        "c2 has the key of another call",
    ),
    "a turn amid another": (
        lambda: with_records(*log()[:2], record(3, other_start(), writer="A")),
        Kind.REORDERED,
        "turn t2 starts while t1 runs",
    ),
    "an event of no turn": (
        lambda: with_records(acquire(1, 1, 0, "A"), record(2, replace(TOKEN, seq=1))),
        Kind.REORDERED,
        "token at 1 belongs to no running turn",
    ),
    "an attempt that was left out": (
        lambda: with_records(*log()[:3], record(4, attempt(3), writer="B")),
        Kind.OTHER,
        "attempt 3 of t1 follows 1 of t1",
    ),
    "a message that is not its tokens": (
        lambda: with_records(*log()[:2], record(3, message("ab"))),
        Kind.LOST,
        "message m1 is not what its tokens were",
    ),
    "a rewind over what was durable": (
        lambda: with_entries(*heard(START, TOKEN), Rewound(0), *heard(START, TOKEN)),
        Kind.LOST,
        "turn_start 1-1 was taken back",
    ),
    "a rewind forward": (
        lambda: with_entries(*heard(START), Rewound(2), *heard(AGAIN)),
        Kind.LOST,
        "it was rewound forward, to 2",
    ),
    "two turns for one POST": (
        lambda: with_records(*log()[:1], record(2, START, replace(START, seq=2)), *log()[2:]),
        Kind.DUPLICATED,
        "turn t1 was acknowledged and starts 2 times",
    ),
    "a structural event that was lost": (
        lambda: with_entries(*heard(START, TOKEN), Heard(1, 3, "tool_start", "{}"), Rewound(2)),
        Kind.LOST,
        "tool_start 1-3 was shown and is not in the log",
    ),
    "a screen that was not rewound": (
        lambda: with_entries(*heard(START, TOKEN), LOST),
        Kind.FORKED,
        "its screen ends with 1-3",
    ),
    "two ends of one turn": (
        lambda: with_records(*log(), record(7, replace(DONE, seq=7), writer="B")),
        Kind.DUPLICATED,
        "follows the end of its turn",
    ),
    "a tool without an end": (
        lambda: with_records(*log()[:3], record(4, AGAIN, CALL, replace(DONE, seq=5), writer="B")),
        Kind.LOST,
        "c1 never ended before its turn did",
    ),
    "an end without a tool": (
        lambda: with_records(*log()[:3], record(4, AGAIN, replace(END, seq=4), writer="B")),
        Kind.REORDERED,
        "without a tool_start",
    ),
    "a tool that acted twice": (
        lambda: replace(good(), rows=[{"key": KEY}, {"key": KEY}]),
        Kind.TOOL_TWICE,
        "a tool acted 2 times",
    ),
    "a tool that acted by itself": (
        lambda: replace(good(), rows=[{"key": KEY}, {"key": "s1/t1/c9"}]),
        Kind.OTHER,
        "without a tool_start in the log",
    ),
    "a success without an act": (
        lambda: replace(good(), rows=[]),
        Kind.LOST,
        "c1 succeeded and left no row",
    ),
    "an act that is denied": (
        lambda: replace(good(), records=denied(), clients=[]),
        Kind.OTHER,
        "c1 ended not_executed and left a row",
    ),
    "two turns for one key": (
        lambda: replace(good(), posts=[("k", "t1"), ("k", "t2")]),
        Kind.DUPLICATED,
        "two turns for the key k",
    ),
    "a turn that was promised and is not there": (
        lambda: replace(good(), posts=[("k", "t7")]),
        Kind.LOST,
        "turn t7 was acknowledged and starts 0 times",
    ),
    "a cancel that was promised and is not there": (
        lambda: replace(good(), records=log()[:4]),
        Kind.LOST,
        "the cancel of t1 was acknowledged and is not in the log",
    ),
    "a turn that never ends": (
        lambda: replace(good(), records=log()[:5], late_cancels=[], clients=[]),
        Kind.LOST,
        "turn t1 was acknowledged and never ended",
    ),
    "a client that is left short of the end": (
        lambda: with_entries(*heard(START, TOKEN, AGAIN)),
        Kind.LOST,
        "client ends at 3, and the log at 6",
    ),
    "a client that is rewound and left there": (
        lambda: with_entries(*heard(START, TOKEN), LOST, Rewound(2)),
        Kind.LOST,
        "client ends at 2, and the log at 6",
    ),
    "an end that a cancel was told of too early": (
        lambda: replace(good(), late_cancels=[("t1", 5)]),
        Kind.OTHER,
        "a cancel was told that t1 had ended, and it had not",
    ),
    "an end that a cancel was told of and that never came": (
        lambda: replace(good(), records=log()[:5], late_cancels=[("t1", 9)]),
        Kind.OTHER,
        "a cancel was told that t1 had ended, and it had not",
    ),
    "a tool behind a cancel": (
        late_tool_start,
        Kind.STARTED_AFTER_STOP,
        "c1 started behind the acknowledged cancel",
    ),
}


def other_start() -> Event:
    return Event(1, 3, "turn_start", compact_json({"turn_id": "t2", "attempt": 1}), "t2", True)


def attempt(number: int) -> Event:
    return event(2, 3, "turn_start", attempt=number)


def message(text: str) -> Event:
    parts = [{"type": "text", "text": text}]
    return event(1, 3, "message", message_id="m1", status="complete", parts=parts)


def denied() -> list[AnyRecord]:
    end = event(2, 5, "tool_end", outcome="not_executed")
    return [*log()[:3], record(4, AGAIN, CALL, end, writer="B"), *log()[4:]]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    history, kind, says = FAULTS[fault]
    found = violations(history())
    assert any(v.kind is kind and says in v.text for v in found), found
