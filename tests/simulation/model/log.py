"""The log as a reader folds it, with every offence against its form.

Knows nothing of writers' states. A log is made once and found again afterwards (``log_of``), so that states
can compare logs by identity and nobody folds one twice.
"""

from __future__ import annotations

from functools import cache

from tests.simulation.model.records import (
    ACQUIRE,
    CANCEL,
    DONE,
    OPENED,
    TOOL_START,
    Events,
    Record,
    newest_turn,
)

Slots = tuple[Record | None, ...]
"""The records by slot, from 1; ``None`` is a hole, which only mutants leave."""


class Log:
    """A log of so many slots. Made by ``log_of`` alone."""

    __slots__ = (
        "acquires",
        "cancelled",
        "done",
        "epoch",
        "events",
        "expired",
        "fault",
        "holder",
        "lengths",
        "slots",
        "turn",
    )

    def __init__(self, slots: Slots, expired: frozenset[int]) -> None:
        self.slots = slots
        self.expired = expired
        """Slots that the store takes for free again, though their records were read (a mutant)."""
        self.events: Events = ()
        self.epoch = 0
        self.holder = -1
        self.acquires: list[tuple[int, int]] = []
        """``(epoch, events before it)`` in log order."""
        self.lengths = [0]
        """How many events the first n slots hold."""
        self.cancelled: frozenset[int] = frozenset()
        """Turns with a cancel record."""
        self.turn = 1
        self.done = False
        """Whether the newest turn has ended."""
        self.fault: str | None = None
        for record in slots:
            if record is not None:
                self._apply(record)
            self.lengths.append(len(self.events))
        self._check_numbers()

    @property
    def stopped(self) -> bool:
        """Whether the newest turn was cancelled."""
        return self.turn in self.cancelled

    def _blame(self, fault: str) -> None:
        self.fault = self.fault or fault

    def _apply(self, record: Record) -> None:
        if self.done and not (record.events and record.events[0].kind == OPENED):
            self._blame("P1 record after the terminal event")
        if record.kind == CANCEL:
            if record.turn in self.cancelled:
                self._blame("P8 two cancel records for one turn")
            self.cancelled |= {record.turn}
            return
        if record.base != len(self.events):
            self._blame("P1 a record does not continue the seqs")
        if record.kind == ACQUIRE:
            if record.epoch <= self.epoch:
                self._blame("P1 the epoch does not grow")
            self.epoch, self.holder = max(self.epoch, record.epoch), record.writer
            self.acquires.append((record.epoch, record.base))
        elif record.epoch < self.epoch:
            self._blame("P1 an older epoch wrote after a newer acquire")
        elif record.epoch > self.epoch:
            self._blame("P1 events of an epoch without an acquire")
        elif record.writer != self.holder:
            self._blame("P1 events by a process that does not hold the epoch")
        self._take(record.events)

    def _take(self, events: Events) -> None:
        self.events += events
        if events:
            self.turn = newest_turn(self.events).number
            self.done = events[-1].kind == DONE
        if self.stopped and any(event.kind == TOOL_START for event in events):
            self._blame("P5 tool_start committed after a cancel")

    def _check_numbers(self) -> None:
        newest: dict[int, int] = {}
        for event in self.events:
            if event.number != newest.get(event.epoch, -1) + 1:
                self._blame("P1 an event was duplicated, lost or reordered inside an epoch")
            newest[event.epoch] = event.number

    def prefix(self, slots: int) -> Log:
        """Return what a reader of the first ``slots`` slots knows."""
        return log_of(self.slots[:slots])

    def put(self, slot: int, record: Record) -> Log:
        """Return the log with the record at a slot, whatever stood there."""
        slots: list[Record | None] = [*self.slots, *[None] * (slot - len(self.slots))]
        slots[slot - 1] = record
        return log_of(tuple(slots), self.expired - {slot})

    def expire(self, slot: int) -> Log:
        """Return the log after the store has deleted the record at a slot."""
        return log_of(self.slots, self.expired | {slot})

    def at(self, slot: int) -> Record | None:
        """Return the record at a slot, if there is one."""
        absent = slot > len(self.slots) or slot in self.expired
        return None if absent else self.slots[slot - 1]


@cache
def log_of(slots: Slots, expired: frozenset[int] = frozenset()) -> Log:
    """Return the log of these slots: always the same object."""
    return Log(slots, expired)


def overwritten(before: Log, after: Log) -> bool:
    """Whether a record that was in the log is another one now."""
    pairs = zip(before.slots, after.slots, strict=False)
    return any(old is not None and old != new for old, new in pairs)
