"""Builds well-formed logs, record by record, as several correct writers would.

Knows nothing of stores. ``view`` judges every record that is put, so a malformed log cannot be built by accident.
"""

from __future__ import annotations

from collections.abc import Iterable

from edge.core.event import Draft, Event
from edge.core.log import Acquire, AnyRecord, Cancel, Events, LogView, Resolve
from edge.core.session import Session
from tests.core.samples import EXECUTE, TURN

EXPIRE_MS = 4_102_444_800_000


def numbered(drafts: Iterable[Draft], first_seq: int, epoch: int = 1) -> tuple[Event, ...]:
    """Give the drafts consecutive seqs."""
    return tuple(
        Event(epoch, first_seq + i, d.type, d.data, d.subject, d.structural, d.private)
        for i, d in enumerate(drafts)
    )


def folded(records: Iterable[AnyRecord]) -> Session:
    """Return the session as a reader of these records knows it."""
    session = Session()
    for record in records:
        session.apply(record)
    return session


class LogBuilder:
    """A log that grows; every method appends one record and returns it."""

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.view = LogView()

    @property
    def events(self) -> list[Event]:
        return [event for r in self.records if isinstance(r, Events) for event in r.events]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def expire_at_ms(self) -> int:
        return max(EXPIRE_MS, self.view.expire_at_ms)

    def session(self) -> Session:
        return folded(self.records)

    def after(self, slot: int) -> list[AnyRecord]:
        return self.records[max(slot, 0) :]  # slots start at 1 here

    def put(self, record: AnyRecord) -> None:
        self.view.apply(record)
        self.records.append(record)

    def acquire(self, writer: str = "edge-a") -> Acquire:
        """Take the lease for ``writer``."""
        made = Acquire(
            slot=self.view.last_slot + 1,
            epoch=self.view.epoch + 1,
            writer=writer,
            last_seq=self.view.last_seq,
            expire_at_ms=self.expire_at_ms,
            epoch_starts=self.view.next_epoch_starts(),
        )
        self.put(made)
        return made

    def write(self, *drafts: Draft) -> Events:
        """Commit the drafts together, as the holder."""
        view = self.view
        run = numbered(drafts, view.last_seq + 1, view.epoch)
        made = Events(
            slot=view.last_slot + 1,
            epoch=view.epoch,
            writer=view.holder,
            last_seq=run[-1].seq,
            expire_at_ms=self.expire_at_ms,
            acquire_slot=view.acquire_slot,
            events=run,
        )
        self.put(made)
        return made

    def cancel(self, turn_id: str = TURN, writer: str = "edge-z") -> Cancel:
        """Stop a turn from another edge."""
        made = Cancel(
            slot=self.view.last_slot + 1,
            epoch=self.view.epoch,
            writer=writer,
            last_seq=self.view.last_seq,
            expire_at_ms=self.expire_at_ms,
            turn_id=turn_id,
        )
        self.put(made)
        return made

    def resolve(self, call_id: str = "c1", decision: str = EXECUTE) -> Resolve:
        """Decide a call from another edge."""
        made = Resolve(
            slot=self.view.last_slot + 1,
            epoch=self.view.epoch,
            writer="edge-z",
            last_seq=self.view.last_seq,
            expire_at_ms=self.expire_at_ms,
            turn_id=TURN,
            call_id=call_id,
            decision=decision,
        )
        self.put(made)
        return made
