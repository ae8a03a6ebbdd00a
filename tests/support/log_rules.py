"""What the log says by itself: rules of the history checker (``tests.support.checker``).

Knows nothing of how a history was made. Each rule names the sentences of PROTOCOL.md that it judges.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from edge.core.errors import LogBroken
from edge.core.event import TERMINAL, TOOL_END, TOOL_START, TURN_START
from edge.core.log import LogView
from tests.support.history import Found, History, Kind, key_of, turn_of


def log_is_well_formed(history: History) -> Iterator[Found]:
    """P-LOG-4: slots contiguous from 1, seqs dense, epochs rising by one, each with its writer."""
    if history.records and history.records[0].slot != 1:
        yield Kind.LOST, f"the log begins at slot {history.records[0].slot}"
    view = LogView()
    try:
        for record in history.records:
            view.apply(record)
    except LogBroken as broken:
        yield Kind.FORKED, f"the log is broken: {broken}"


def turns_end_once(history: History) -> Iterator[Found]:
    """P-EVT-1: one terminal event, and nothing of the turn after it."""
    ended: set[str] = set()
    for event in history.events():
        turn = turn_of(event)
        if turn in ended:
            kind = Kind.DUPLICATED if event.type in TERMINAL else Kind.REORDERED
            yield kind, f"{event.type} {event.epoch}-{event.seq} follows the end of its turn"
        if event.type in TERMINAL:
            ended.add(turn)


def turns_follow_each_other(history: History) -> Iterator[Found]:
    """P-EVT-1, P-RUN-3: one turn at a time, its attempts counted by one, nothing outside of it."""
    running, attempt = "", 0
    for event in history.events() if history.whole() else ():
        turn = turn_of(event)
        if event.type != TURN_START:
            if turn != running:
                yield Kind.REORDERED, f"{event.type} at {event.seq} belongs to no running turn"
        elif (number := json.loads(event.data)["attempt"]) == 1:
            if running:
                yield Kind.REORDERED, f"turn {turn} starts while {running} runs"
            running, attempt = turn, 1
        else:
            if (turn, number) != (running, attempt + 1):
                yield Kind.OTHER, f"attempt {number} of {turn} follows {attempt} of {running}"
            attempt = number
        if event.type in TERMINAL:
            running = ""


def tools_end_once(history: History) -> Iterator[Found]:
    """P-EVT-4: one ``tool_end`` for each ``tool_start``, before the terminal event."""
    running: set[tuple[str, str]] = set()
    for event in history.events():
        call = (turn_of(event), event.subject)
        if event.type == TOOL_START:
            running.add(call)
        elif event.type == TOOL_END:
            if call not in running:
                yield (
                    Kind.REORDERED,
                    f"tool_end of {event.subject} at {event.seq} without a tool_start",
                )
            running.discard(call)
        elif event.type in TERMINAL:
            for turn, subject in sorted(running):
                if turn == call[0]:
                    yield Kind.LOST, f"{subject} never ended before its turn did"


def calls_start_once(history: History) -> Iterator[Found]:
    """P-EVT-4: each call of a turn starts once, by a key that no other call has."""
    starts = [event for event in history.events() if event.type == TOOL_START]
    for (_, subject), count in Counter((turn_of(e), e.subject) for e in starts).items():
        if count > 1:
            yield Kind.TOOL_TWICE, f"{subject} starts {count} times"
    calls: dict[str, tuple[str, str]] = {}
    for event in starts:
        call = (turn_of(event), event.subject)
        if event.private and calls.setdefault(key_of(event), call) != call:
            yield Kind.OTHER, f"{event.subject} has the key of another call"


def messages_restate_their_text(history: History) -> Iterator[Found]:
    """P-EVT-2: of the attempt that completed it, a message has the text of its tokens, no more and no less."""
    text: dict[str, str] = {}
    for event in history.events() if history.whole() else ():
        body = json.loads(event.data)
        message = body.get("message_id", "")
        if event.type == TURN_START:
            text = {}
        elif event.type == "token":
            text[message] = text.get(message, "") + body["text"]
        elif event.type == "message" and body["status"] == "complete":
            said = "".join(part.get("text", "") for part in body["parts"])
            if text.get(message, said) != said:
                yield Kind.LOST, f"message {message} is not what its tokens were"
