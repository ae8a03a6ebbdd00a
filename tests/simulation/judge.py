"""The judge: watches every step of a run and, at its end, what is left of it.

Knows nothing of how a run is made. What can be judged from the outside is left to the history checker that
judges every layer (``tests.support.checker``); here is what only a simulation can see: that a structural
event was in the store when it was shown, a ``tool_start`` when its body ran, a cancel when it was answered.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator

from edge.core.event import SUSPENDED, TERMINAL, TOOL_END, TOOL_START, TURN_START, Event
from edge.core.log import Acquire
from edge.core.requests import TurnStarted
from edge.ports import AttemptCall, AttemptRef
from tests.simulation.attempt import Attempt, key_of
from tests.simulation.store import Store
from tests.support.checker import violations
from tests.support.history import (
    Cleared,
    ClientLog,
    Heard,
    History,
    Kind,
    Rewound,
    Violation,
)


class Screen:
    """What one client shows, held against the store event by event."""

    def __init__(self, name: str, store: Store, accuse: Callable[[Kind, str], None]) -> None:
        self.log = ClientLog(name)
        self.shown: list[Event] = []
        self._store = store
        self._accuse = accuse
        self._highest_epoch = 0

    def hear(self, event: Event) -> None:
        """Take in the next event of a stream."""
        self.log.entries.append(Heard(event.epoch, event.seq, event.type, event.data))
        name, seq = self.log.name, event.seq
        if self.shown and seq != self.shown[-1].seq + 1:
            self._accuse(Kind.REORDERED, f"{name} was shown {seq} after {self.shown[-1].seq}")
        if event.epoch < self._highest_epoch:
            self._accuse(
                Kind.REORDERED, f"{name} was shown epoch {event.epoch} after {self._highest_epoch}"
            )
        if event.epoch > self._highest_epoch:
            self._highest_epoch = event.epoch
            self._settle()
        self.shown.append(event)
        there = self._store.events.get(seq)
        if there is not None and there.epoch < event.epoch:
            self._accuse(
                Kind.FORKED,
                f"{name} was shown {event.epoch}-{seq}, and the log has {there.epoch}-{seq}",
            )

    def _settle(self) -> None:
        """Once a later epoch has spoken, everything before it is final (the fork is behind us)."""
        for event in self.shown:
            if self._store.events.get(event.seq) != event:
                self._accuse(
                    Kind.FORKED,
                    f"{self.log.name} keeps {event.epoch}-{event.seq}, which did not survive",
                )
                return

    def rewind(self, seq: int) -> None:
        self.log.entries.append(Rewound(seq))
        gone = [event for event in self.shown if event.seq > seq]
        if any(event.structural for event in gone):
            self._accuse(
                Kind.LOST, f"{self.log.name} was rewound to {seq}, behind a structural event"
            )
        self.shown = [event for event in self.shown if event.seq <= seq]

    def clear(self, first_seq: int) -> None:
        self.log.entries.append(Cleared(first_seq))
        self.shown.clear()


class Judge:
    """Collects the violations of one run."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.violations: list[Violation] = []
        self.screens: list[Screen] = []
        self.counts: Counter[str] = Counter()
        self._rows: list[dict[str, str]] = []
        self._posts: list[tuple[str, str]] = []
        self._cancels: list[str] = []
        self._started_before: dict[str, int] = {}
        """How many events the log had when the first cancel of a turn was acknowledged."""

    def accuse(self, kind: Kind, what: str) -> None:
        self.violations.append(Violation(kind, what))

    def screen(self, name: str) -> Screen:
        """Return a new client's screen."""
        self.screens.append(Screen(name, self.store, self.accuse))
        return self.screens[-1]

    def shown(self, process: str, event: Event) -> None:
        """An edge process is about to send an event to a client."""
        if self.store.events.get(event.seq) == event:
            return
        name = f"{event.type} {event.epoch}-{event.seq}"
        if event.structural:
            self.accuse(Kind.OTHER, f"{process} showed {name} before its commit")
        if event.epoch < self.store.told.get(process.partition("#")[0], 0):
            self.accuse(Kind.OTHER, f"{process} showed {name} after it was told of a later epoch")

    def attempt_asked_for(self, edge: str, call: AttemptCall) -> None:
        """An edge is about to ask a runtime for an attempt."""
        start = next((e for e in self.store.events.values() if _opens(e, call.ref)), None)
        name = f"attempt {call.ref.attempt}"
        if start is None:
            self.accuse(Kind.OTHER, f"{edge} asked for {name} before it was durable")
        elif start.epoch < self.store.told.get(edge, 0):
            self.accuse(
                Kind.OTHER, f"{edge} asked for {name} of epoch {start.epoch}, told of a later one"
            )

    def tool_ran(self, attempt: Attempt, call_id: str, safety: str) -> None:
        """The body of a tool begins."""
        key = key_of(attempt.turn_id, call_id)
        self.counts["tool_runs"] += 1
        if call_id not in self.store.calls:
            self.accuse(Kind.OTHER, f"{call_id} ran before its tool_start was committed")
        if safety == "unsafe":
            self._rows.append({"key": key})
        else:
            self.counts["idempotent_runs"] += 1

    def post_answered(self, key: str, started: TurnStarted) -> None:
        self._posts.append((key, started.turn_id))
        if started.turn_id not in self._turns_in_log():
            self.accuse(Kind.LOST, f"the POST of {key} was answered before its turn was durable")

    def cancel_answered(self, turn_id: str, answer: str) -> None:
        if answer == "done":
            if turn_id not in self.store.ended:
                self.accuse(
                    Kind.OTHER, f"a cancel was told that {turn_id} had ended, and it had not"
                )
            return
        self._cancels.append(turn_id)
        self._started_before.setdefault(turn_id, self.store.last_seq)
        if turn_id not in self.store.cancelled:
            self.accuse(Kind.LOST, f"a cancel of {turn_id} was acknowledged before it was durable")

    def _count_paths(self) -> None:
        """Note which interesting paths the log took, so that a campaign can tell that it saw them."""
        acquires = sum(isinstance(record, Acquire) for record in self.store.records.values())
        self.counts["epochs_after_the_first"] += max(acquires - 1, 0)
        for event in self.store.events.values():
            body = json.loads(event.data)
            if event.type == SUSPENDED:
                self.counts[f"suspensions_{body['reason']}"] += 1
            elif event.type == TOOL_END:
                self.counts[f"tools_{body['outcome']}"] += 1
            elif event.type in TERMINAL:
                self.counts[f"turns_{body.get('outcome', event.type)}"] += 1

    def _starts_behind_a_stop(self) -> Iterator[Violation]:
        """P-HTTP-11, by the clock: the log alone cannot tell of a stop that came into it too late."""
        for event in self.store.events.values():
            turn_id = json.loads(event.data)["turn_id"]
            known = self._started_before.get(turn_id, math.inf)
            if event.type == TOOL_START and event.seq > known:
                yield Violation(
                    Kind.STARTED_AFTER_STOP, f"{event.subject} started after its stop was promised"
                )

    def _turns_in_log(self) -> set[str]:
        return {e.subject for e in self.store.events.values() if e.type == "turn_start"}

    def finish(self) -> list[Violation]:
        """Judge the whole run; return everything that it did wrong."""
        self._count_paths()
        history = History(
            records=self.store.log(),
            clients=[screen.log for screen in self.screens],
            rows=self._rows,
            posts=self._posts,
            cancels=self._cancels,
            over=True,
        )
        return [*self.violations, *self._starts_behind_a_stop(), *violations(history)]


def _opens(event: Event, ref: AttemptRef) -> bool:
    if event.type != TURN_START or event.subject != ref.turn_id:
        return False
    return bool(json.loads(event.data)["attempt"] == ref.attempt)
