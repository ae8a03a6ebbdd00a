"""What callers were answered and tools did: rules of the history checker (``tests.support.checker``).

Knows nothing of how a history was made. Each rule names the sentences of PROTOCOL.md that it judges.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from edge.core.event import SUSPENDED, TERMINAL, TOOL_END, TOOL_START, TURN_START, Event
from edge.core.log import Cancel, Resolve
from tests.support.history import LEDGER_TOOL, Found, History, Kind, key_of, turn_of

PARKS = ("input_required", "client_tool")
"""Why a turn may be suspended until somebody outside decides."""


def tools_act_once(history: History) -> Iterator[Found]:
    """P-RUN-4, P-RUN-6: never without a ``tool_start``, never twice, and as its end says."""
    counts = Counter(str(row["key"]) for row in history.rows)
    started = {key_of(e): e for e in history.events() if _is_ledger_start(e)}
    ends = {(turn_of(e), e.subject): e for e in history.events() if e.type == TOOL_END}
    for key, count in counts.items():
        if key not in started:
            yield Kind.OTHER, f"a tool acted without a tool_start in the log (key {key})"
        if count > 1:
            yield Kind.TOOL_TWICE, f"a tool acted {count} times (key {key})"
    for key, start in started.items():
        end = ends.get((turn_of(start), start.subject))
        outcome = json.loads(end.data)["outcome"] if end is not None else "unknown"
        if outcome == "succeeded" and not counts[key]:
            yield Kind.LOST, f"{start.subject} succeeded and left no row"
        if outcome in ("not_executed", "failed") and counts[key]:
            yield Kind.OTHER, f"{start.subject} ended {outcome} and left a row"


def posts_start_one_turn(history: History) -> Iterator[Found]:
    """P-HTTP-4, P-HTTP-5: an answered POST is one turn, and equal keys are equal turns."""
    starts = Counter(
        turn_of(event)
        for event in history.events()
        if event.type == TURN_START and json.loads(event.data)["attempt"] == 1
    )
    turns: dict[str, str] = {}
    keys: dict[str, str] = {}
    for key, turn in history.posts:
        if turns.setdefault(key, turn) != turn:
            yield Kind.DUPLICATED, f"two turns for the key {key}"
        if keys.setdefault(turn, key) != key:
            yield Kind.LOST, f"two keys for the turn {turn}"
        if starts[turn] != 1:
            kind = Kind.DUPLICATED if starts[turn] else Kind.LOST
            yield kind, f"turn {turn} was acknowledged and starts {starts[turn]} times in the log"


def turns_come_to_an_end(history: History) -> Iterator[Found]:
    """P-EVT-1: an acknowledged turn has a terminal event in the end, unless it waits for somebody outside."""
    newest = {turn_of(event): event for event in history.events()}
    for _, turn in history.posts if history.over else ():
        last = newest.get(turn)
        if last is None or (last.type not in TERMINAL and not _waits(last, turn, history)):
            yield Kind.LOST, f"turn {turn} was acknowledged and never ended"


def _waits(last: Event, turn: str, history: History) -> bool:
    """Whether a turn was left by its runtime for a decision that nobody has made."""
    told = [r for r in history.records if isinstance(r, Cancel | Resolve) and r.turn_id == turn]
    if last.type != SUSPENDED or any(isinstance(record, Cancel) for record in told):
        return False
    body = json.loads(last.data)
    decided = {record.call_id for record in told if isinstance(record, Resolve)}
    return body["reason"] in PARKS and not decided.issuperset(body["pending_call_ids"])


def cancels_hold(history: History) -> Iterator[Found]:
    """P-HTTP-10, P-HTTP-11: an answered cancel is in the log, and no tool starts behind it."""
    for turn in history.cancels:
        slot = next(
            (r.slot for r in history.records if isinstance(r, Cancel) and r.turn_id == turn), None
        )
        if slot is None:
            yield Kind.LOST, f"the cancel of {turn} was acknowledged and is not in the log"
            continue
        for at, event in history.placed():
            if at > slot and event.type == TOOL_START and turn_of(event) == turn:
                yield (
                    Kind.STARTED_AFTER_STOP,
                    f"{event.subject} started behind the acknowledged cancel of its turn",
                )


def late_cancels_came_too_late(history: History) -> Iterator[Found]:
    """P-HTTP-10: whoever is told that a turn has ended is told of what is in the log."""
    ends = {turn_of(event): at for at, event in history.placed() if event.type in TERMINAL}
    for turn, slot in history.late_cancels:
        if ends.get(turn, slot + 1) > slot:
            yield Kind.OTHER, f"a cancel was told that {turn} had ended, and it had not"


def _is_ledger_start(event: Event) -> bool:
    return event.type == TOOL_START and json.loads(event.data)["name"] == LEDGER_TOOL
