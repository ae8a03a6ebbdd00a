"""Judges what a run left behind: a list of violations, empty when all is well.

Knows nothing of how the history was made. It is given what can be seen from outside: the journal,
what every client was shown in order, the ledger of a tool that leaves a row each time it acts, and
the requests that were answered 202. A request that was never answered may or may not have happened
and is left out. Each rule names the sentences of PROTOCOL.md that it judges.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from edge.core.errors import LogBroken
from edge.core.event import TERMINAL, TOOL_END, TOOL_START, TURN_START, Event
from edge.core.log import AnyRecord, Cancel, Events, LogView

COALESCABLE = frozenset({"token", "reasoning", "tool_progress"})
LEDGER_TOOL = "append_note"
"""The tool whose every execution is a row of the ledger. It is UNSAFE to repeat."""


class Kind(Enum):
    """What a user would call a violation: the columns of docs/reliability.md."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    FORKED = "forked"
    TOOL_TWICE = "tools run twice"
    STARTED_AFTER_STOP = "tool starts after an acknowledged stop"
    OTHER = "other"
    """Neither of these, and still not what was promised."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One promise that was broken."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.text}"


@dataclass(frozen=True, slots=True)
class Heard:
    """An event as a client was shown it."""

    epoch: int
    seq: int
    type: str
    data: str

    @property
    def id(self) -> str:
        return f"{self.epoch}-{self.seq}"


@dataclass(frozen=True, slots=True)
class Rewound:
    """The client was told to drop everything after a seq."""

    to: int


@dataclass(frozen=True, slots=True)
class Cleared:
    """The client was told to drop everything."""

    first_seq: int


Entry = Heard | Rewound | Cleared
Found = tuple[Kind, str]


@dataclass(slots=True)
class ClientLog:
    """Everything that one client was shown, over all its connections, in order."""

    name: str = "client"
    entries: list[Entry] = field(default_factory=list)
    after: int | None = None
    """The seq of the cursor that it began with; None if it joined without one."""
    settled: bool = True
    """Whether it was connected long enough at the end to be told what did not survive."""

    def heard(self) -> Iterator[Heard]:
        """Yield every event, also what was taken back later."""
        return (entry for entry in self.entries if isinstance(entry, Heard))

    def screen(self) -> list[Heard]:
        """Return what the client shows after obeying all that it was told."""
        screen: list[Heard] = []
        for entry in self.entries:
            match entry:
                case Heard():
                    screen.append(entry)
                case Rewound(to):
                    screen = [event for event in screen if event.seq <= to]
                case Cleared():
                    screen = []
        return screen


@dataclass(slots=True, kw_only=True)
class History:
    """All that is known of one session."""

    records: Sequence[AnyRecord]
    clients: Sequence[ClientLog] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    """The ledger: one row each time ``append_note`` acted, with its call's idempotency key."""
    posts: Sequence[tuple[str, str]] = ()
    """``(idempotency key, turn id)`` of every POST of a turn that was answered 202."""
    cancels: Sequence[str] = ()
    """Turn ids whose cancel was answered 202."""

    def events(self) -> list[Event]:
        return [event for r in self.records if isinstance(r, Events) for event in r.events]

    def whole(self) -> bool:
        """Whether the log is here from its beginning: retention took nothing of it."""
        return bool(self.records) and self.records[0].slot == 1


def violations(history: History) -> list[Violation]:
    """Return every promise that this history breaks."""
    return [Violation(*found) for rule in RULES for found in rule(history)]


def _log_is_well_formed(history: History) -> Iterator[Found]:
    """P-LOG-4: slots contiguous from 1, seqs dense, epochs rising by one, each with its writer."""
    if history.records and history.records[0].slot != 1:
        yield Kind.LOST, f"the log begins at slot {history.records[0].slot}"
    view = LogView()
    try:
        for record in history.records:
            view.apply(record)
    except LogBroken as broken:
        yield Kind.FORKED, f"the log is broken: {broken}"


def _ids_name_one_content(history: History) -> Iterator[Found]:
    """P-SSE-5: what an id stands for is the same for everybody, for ever."""
    known = {f"{e.epoch}-{e.seq}": (e.type, e.data) for e in history.events()}
    for client in history.clients:
        for event in client.heard():
            if known.setdefault(event.id, (event.type, event.data)) != (event.type, event.data):
                yield Kind.FORKED, f"{client.name}: {event.id} is not what others know by that id"


def _events_come_in_order(history: History) -> Iterator[Found]:
    """P-SSE-6: without a gap, each at most once, unless a control event said so."""
    for client in history.clients:
        expected = None if client.after is None else client.after + 1
        seen: set[int] = set()
        for entry in client.entries:
            match entry:
                case Rewound(to):
                    expected = to + 1
                case Cleared(first_seq):
                    expected = first_seq
                case Heard():
                    if expected is not None and entry.seq != expected:
                        yield (
                            _disorder(entry.seq, expected, seen),
                            f"{client.name}: {entry.id} came where seq {expected} was due",
                        )
                    seen.add(entry.seq)
                    expected = entry.seq + 1


def _disorder(seq: int, expected: int, seen: Container[int]) -> Kind:
    if seq > expected:
        return Kind.LOST
    return Kind.DUPLICATED if seq in seen else Kind.REORDERED


def _structural_events_were_durable(history: History) -> Iterator[Found]:
    """P-LOG-7, P-SSE-11: only a coalescable event may be shown and not be in the log."""
    durable = {(event.epoch, event.seq) for event in history.events()}
    for client in history.clients:
        for event in client.heard():
            if event.type not in COALESCABLE and (event.epoch, event.seq) not in durable:
                yield (
                    Kind.LOST,
                    f"{client.name}: {event.type} {event.id} was shown and is not in the log",
                )


def _screens_show_the_log(history: History) -> Iterator[Found]:
    """P-SSE-6, P-SSE-11: in the end a screen is a run of the log, up to the end of what it knows."""
    log = {event.seq: (event.epoch, event.type, event.data) for event in history.events()}
    for client in history.clients:
        for event in client.screen() if client.settled else ():
            if log.get(event.seq) != (event.epoch, event.type, event.data):
                yield (
                    Kind.FORKED,
                    f"{client.name}: its screen ends with {event.id}, and the log has another",
                )
                break


def _turns_end_once(history: History) -> Iterator[Found]:
    """P-EVT-1: one terminal event, and nothing of the turn after it."""
    ended: set[str] = set()
    for event in history.events():
        turn = _turn_of(event)
        if turn in ended:
            kind = Kind.DUPLICATED if event.type in TERMINAL else Kind.REORDERED
            yield kind, f"{event.type} {event.epoch}-{event.seq} follows the end of its turn"
        if event.type in TERMINAL:
            ended.add(turn)


def _tools_end_once(history: History) -> Iterator[Found]:
    """P-EVT-4: one ``tool_end`` for each ``tool_start``, before the terminal event."""
    running: set[tuple[str, str]] = set()
    for event in history.events():
        call = (_turn_of(event), event.subject)
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


def _tools_act_once(history: History) -> Iterator[Found]:
    """P-RUN-4, P-RUN-6: never without a ``tool_start``, never twice, and as its end says."""
    counts = Counter(str(row["key"]) for row in history.rows)
    started = {_key(e): e for e in history.events() if _is_ledger_start(e)}
    ends = {(_turn_of(e), e.subject): e for e in history.events() if e.type == TOOL_END}
    for key, count in counts.items():
        if key not in started:
            yield Kind.OTHER, f"a tool acted without a tool_start in the log (key {key})"
        if count > 1:
            yield Kind.TOOL_TWICE, f"a tool acted {count} times (key {key})"
    for key, start in started.items():
        end = ends.get((_turn_of(start), start.subject))
        outcome = json.loads(end.data)["outcome"] if end is not None else "unknown"
        if outcome == "succeeded" and not counts[key]:
            yield Kind.LOST, f"{start.subject} succeeded and left no row"
        if outcome in ("not_executed", "failed") and counts[key]:
            yield Kind.OTHER, f"{start.subject} ended {outcome} and left a row"


def _posts_start_one_turn(history: History) -> Iterator[Found]:
    """P-HTTP-4, P-HTTP-5: an answered POST is one turn, and equal keys are equal turns."""
    starts = Counter(
        _turn_of(event)
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


def _cancels_hold(history: History) -> Iterator[Found]:
    """P-HTTP-10, P-HTTP-11: an answered cancel is in the log, and no tool starts behind it."""
    for turn in history.cancels:
        slot = next(
            (r.slot for r in history.records if isinstance(r, Cancel) and r.turn_id == turn), None
        )
        if slot is None:
            yield Kind.LOST, f"the cancel of {turn} was acknowledged and is not in the log"
            continue
        for record in history.records:
            for event in record.events if isinstance(record, Events) else ():
                if record.slot > slot and event.type == TOOL_START and _turn_of(event) == turn:
                    yield (
                        Kind.STARTED_AFTER_STOP,
                        f"{event.subject} started behind the acknowledged cancel of its turn",
                    )


def _rewinds_take_tokens_back(history: History) -> Iterator[Found]:
    """P-SSE-11: a rewind goes back, and never over a structural event."""
    structural = {(e.epoch, e.seq) for e in history.events() if e.structural}
    for client in history.clients:
        screen: list[Heard] = []
        for entry in client.entries:
            match entry:
                case Heard():
                    screen.append(entry)
                case Rewound(to):
                    gone = [event for event in screen if event.seq > to]
                    if screen and to > screen[-1].seq:
                        yield Kind.LOST, f"{client.name}: it was rewound forward, to {to}"
                    for event in gone:
                        if (event.epoch, event.seq) in structural:
                            yield (
                                Kind.LOST,
                                f"{client.name}: {event.type} {event.id} was taken back",
                            )
                    screen = screen[: len(screen) - len(gone)]
                case Cleared():
                    screen = []


def _turns_follow_each_other(history: History) -> Iterator[Found]:
    """P-EVT-1, P-RUN-3: one turn at a time, its attempts counted by one, nothing outside of it."""
    running, attempt = "", 0
    for event in history.events() if history.whole() else ():
        turn = _turn_of(event)
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


def _calls_start_once(history: History) -> Iterator[Found]:
    """P-EVT-4: each call of a turn starts once, by a key that no other call has."""
    starts = [event for event in history.events() if event.type == TOOL_START]
    for (_, subject), count in Counter((_turn_of(e), e.subject) for e in starts).items():
        if count > 1:
            yield Kind.TOOL_TWICE, f"{subject} starts {count} times"
    calls: dict[str, tuple[str, str]] = {}
    for event in starts:
        call = (_turn_of(event), event.subject)
        if event.private and calls.setdefault(_key(event), call) != call:
            yield Kind.OTHER, f"{event.subject} has the key of another call"


def _messages_restate_their_text(history: History) -> Iterator[Found]:
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


RULES: tuple[Callable[[History], Iterator[Found]], ...] = (
    _log_is_well_formed,
    _ids_name_one_content,
    _events_come_in_order,
    _structural_events_were_durable,
    _screens_show_the_log,
    _turns_end_once,
    _tools_end_once,
    _tools_act_once,
    _posts_start_one_turn,
    _cancels_hold,
    _rewinds_take_tokens_back,
    _turns_follow_each_other,
    _calls_start_once,
    _messages_restate_their_text,
)


def _turn_of(event: Event) -> str:
    return str(json.loads(event.data)["turn_id"])


def _is_ledger_start(event: Event) -> bool:
    return event.type == TOOL_START and json.loads(event.data)["name"] == LEDGER_TOOL


def _key(event: Event) -> str:
    return str(json.loads(event.private)["idempotency_key"])
