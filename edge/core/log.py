"""The slot log: its records, and the view that a reader folds from them.

A session's journal is one append-only log of create-only records at contiguous slots. The log is the
lock: a record is created at the slot after the last one its writer has read, so whoever has not seen
a record cannot append after it. The rules P-LOG-1 to P-LOG-15 are in ``proto/PROTOCOL.md``.

Knows nothing of stores; ``edge.journal`` keeps these records, ``edge.sessions`` appends them.

Invariants of a well-formed log (``LogView.apply`` refuses anything else):

- slots are contiguous and start at 1, or after an expired prefix
- an ``Acquire`` raises the epoch by one and starts at the seq after the last
- ``Events`` belong to the newest epoch and its writer, and continue the seqs without a gap
- ``last_seq`` and ``expire_at_ms`` never go down
"""

from __future__ import annotations

from dataclasses import dataclass, field

from edge.core.errors import LogBroken
from edge.core.event import Event

EPOCH_STARTS_KEPT = 64
"""How many epochs an ``Acquire`` names; a cursor of an older one cannot be resolved by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What every record says. Two records are the same only if every field is (P-LOG-2)."""

    slot: int
    epoch: int
    """The epoch it was written in; for a decision, the newest epoch its writer had read."""
    writer: str
    """UUID of the process that wrote it, new at every start: never a hostname."""
    last_seq: int
    """Newest seq of the log once this record is in it."""
    expire_at_ms: int
    """Wall-clock milliseconds after which readers treat it as absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquire(Record):
    """Takes the lease: from here on only ``epoch`` may write events."""

    epoch_starts: tuple[tuple[int, int], ...]
    """``(epoch, first seq)`` of the newest epochs, oldest first, this one last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Events(Record):
    """A run of consecutive events of one epoch, committed together."""

    acquire_slot: int
    """Slot of this epoch's ``Acquire``."""
    events: tuple[Event, ...]

    @property
    def first_seq(self) -> int:
        return self.events[0].seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(Record):
    """Somebody asked a turn to stop. Whoever writes next has read it (P-LOG-8)."""

    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve(Record):
    """A person or a browser decided a tool call that waited for them."""

    turn_id: str
    call_id: str
    decision: str
    """ASCII JSON: ``{"execute":true}``, or ``{"outcome":...,"result_json":...,"reason":...}``."""


AnyRecord = Acquire | Events | Cancel | Resolve


@dataclass(slots=True)
class LogView:
    """What one reader knows of a log: everything up to ``last_slot`` and nothing after it."""

    last_slot: int = 0
    last_seq: int = 0
    first_seq: int = 1
    """Oldest seq still kept."""
    epoch: int = 0
    holder: str = ""
    """Writer of the newest ``Acquire``."""
    acquire_slot: int = 0
    epoch_starts: tuple[tuple[int, int], ...] = field(default=())
    expire_at_ms: int = 0

    def apply(self, record: AnyRecord) -> None:
        """Take in the next record.

        Raises:
            LogBroken: it is not the one that a correct writer could have put there.
        """
        self._check(record)
        self.last_slot = record.slot
        self.last_seq = record.last_seq
        self.expire_at_ms = record.expire_at_ms
        if isinstance(record, Acquire):
            self.epoch = record.epoch
            self.holder = record.writer
            self.acquire_slot = record.slot
            self.epoch_starts = record.epoch_starts

    def _check(self, record: AnyRecord) -> None:
        if self.last_slot == 0:
            self._start_at(record)
        if record.slot != self.last_slot + 1:
            raise LogBroken(f"slot {record.slot} follows {self.last_slot}")
        if record.expire_at_ms < self.expire_at_ms:
            raise LogBroken(f"slot {record.slot} expires before its predecessor")
        if not self._continues(record):
            raise LogBroken(f"slot {record.slot} does not continue the log")

    def _start_at(self, record: AnyRecord) -> None:
        """Expired records are absent, so a log may begin anywhere; what it begins with says where."""
        if isinstance(record, Events) and not record.events:
            raise LogBroken(f"slot {record.slot} holds no event")
        self.last_slot = record.slot - 1
        if isinstance(record, Events):
            self.last_seq = record.first_seq - 1
            self.epoch, self.holder = record.epoch, record.writer
            self.acquire_slot = record.acquire_slot
            self.epoch_starts = ((record.epoch, record.first_seq),)
        else:
            self.last_seq = record.last_seq
            self.epoch = record.epoch - isinstance(record, Acquire)
        self.first_seq = self.last_seq + 1

    def _continues(self, record: AnyRecord) -> bool:
        if isinstance(record, Acquire):
            starts_next = record.epoch_starts[-1:] == ((record.epoch, self.last_seq + 1),)
            return (
                record.epoch == self.epoch + 1 and record.last_seq == self.last_seq and starts_next
            )
        if isinstance(record, Events):
            seqs = [event.seq for event in record.events]
            dense = seqs == list(range(self.last_seq + 1, record.last_seq + 1)) and bool(seqs)
            return dense and (record.epoch, record.writer) == (self.epoch, self.holder)
        return record.last_seq == self.last_seq and record.epoch <= self.epoch

    def next_epoch_starts(self) -> tuple[tuple[int, int], ...]:
        """Return what an ``Acquire`` at the next slot must say."""
        return (*self.epoch_starts, (self.epoch + 1, self.last_seq + 1))[-EPOCH_STARTS_KEPT:]

    def next_cancel(self, turn_id: str, *, writer: str, expire_at_ms: int) -> Cancel:
        """Return the record that asks a turn to stop, for the next slot."""
        return Cancel(
            slot=self.last_slot + 1,
            epoch=self.epoch,
            writer=writer,
            last_seq=self.last_seq,
            expire_at_ms=expire_at_ms,
            turn_id=turn_id,
        )
