"""A bench for the writer: it owns a turn, a test feeds it inputs and plays journal, runtime and clock.

Knows nothing of tasks. Every answer of the writer is held against the invariants of ``edge.core.writer``,
whatever the test is about; the journal here is a real log that refuses an impossible record.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TypeVar

from edge.core import effects as fx
from edge.core import inputs as ins
from edge.core.event import Draft, Event
from edge.core.lease import FENCE_MARGIN_SECONDS
from edge.core.log import AnyRecord, Events
from edge.core.patience import Now, WriterSettings
from edge.core.turn import Turn
from edge.core.writer import Writer
from tests.core.log_builder import EXPIRE_MS, LogBuilder
from tests.core.samples import start

ME = "edge-a"
BEGIN_SECONDS = 1_000.0
_Effect = TypeVar("_Effect", bound=fx.Effect)


def owned_turn(*drafts: Draft) -> LogBuilder:
    """Return the log of a turn that this edge has just started, and that got as far as ``drafts``."""
    log = LogBuilder()
    log.acquire(ME)
    log.write(start())
    if drafts:
        log.write(*drafts)
    return log


class Bench:
    """One writer and the world around it. ``fresh=False``: it has just taken the turn over."""

    def __init__(
        self,
        log: LogBuilder | None = None,
        settings: WriterSettings | None = None,
        *,
        fresh: bool = True,
    ) -> None:
        self.log = log or owned_turn()
        self.settings = settings or WriterSettings()
        self.seconds = BEGIN_SECONDS
        self.effects: list[fx.Effect] = []
        self.in_flight: AnyRecord | None = None
        self.polling_after: int | None = None
        self.confirmed_at = self.seconds
        self.shown: list[Event] = []
        self._told_slot = 0  # newest slot that the writer has been told of
        self._known: dict[int, Event] = {}  # by seq, what it has been told of
        self._tell(self.log.view.last_slot)
        self._indexes: dict[str, int] = {}
        self._next_index = 1
        self._sent_at = self.seconds
        self.writer = Writer(
            self.log.session(),
            ME,
            self.settings,
            chance=random.Random(7),
            now=self.now,
            fresh=fresh,
        )
        self.feed(ins.Tick())

    # --- what a test reads ------------------------------------------------------------------------

    @property
    def now(self) -> Now:
        return Now(self.seconds, EXPIRE_MS + int(self.seconds * 1000))

    @property
    def turn(self) -> Turn:
        return self.writer.turn

    @property
    def closed(self) -> fx.Close | None:
        closes = self.all(fx.Close)
        return closes[-1] if closes else None

    @property
    def known_cancelled(self) -> bool:
        return self.turn.cancelled

    @property
    def types_shown(self) -> list[str]:
        return [event.type for event in self.shown]

    @property
    def batch(self) -> list[str]:
        """Types of the events in flight."""
        assert isinstance(self.in_flight, Events), self.in_flight
        return [event.type for event in self.in_flight.events]

    def all(self, kind: type[_Effect]) -> list[_Effect]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    # --- what happens -----------------------------------------------------------------------------

    def feed(self, item: ins.Input) -> list[fx.Effect]:
        """Let the writer judge one input; return its effects, held against the invariants."""
        was_closed = self.closed is not None
        effects = self.writer.receive(item, self.now)
        assert not (was_closed and effects), "nothing comes after the close"
        for effect in effects:
            self._check(effect)
            self.effects.append(effect)
        assert self.writer.uncommitted_events >= 0
        assert self.writer.uncommitted_bytes >= 0
        return effects

    def wait(self, seconds: float) -> list[fx.Effect]:
        """Let time pass; the writer hears of it at every moment it asked for."""
        until, effects = self.seconds + seconds, []
        for _ in range(10_000):
            wake_at = self.writer.wake_at()
            if wake_at is None or wake_at > until:
                break
            self.seconds = max(self.seconds, wake_at)
            effects += self.feed(ins.Tick())
        else:
            raise AssertionError("the writer spins")
        self.seconds = until
        return effects + self.feed(ins.Tick())

    def receive(self, *drafts: Draft, attempt: int | None = None) -> list[fx.Effect]:
        """Events of the running attempt arrive, in one message."""
        numbered = []
        for draft in drafts:
            numbered.append(replace(draft, index=self._next_index))
            if draft.gated:
                self._indexes[draft.subject] = self._next_index
            self._next_index += 1
        attempt = self.turn.attempt if attempt is None else attempt
        return self.feed(ins.Received(attempt, numbered))

    def end_stream(self, reason: str = "", *, retryable: bool = True) -> list[fx.Effect]:
        return self.feed(ins.StreamEnded(self.turn.attempt, reason, retryable))

    def land(self) -> list[fx.Effect]:
        """The append in flight reaches the journal: it is committed, or it meets what stands there."""
        record, self.in_flight = self.in_flight, None
        assert record is not None
        if met := self.log.after(record.slot - 1):
            self._tell(met[-1].slot)
            return self.feed(ins.Met(met))
        self.log.put(record)
        self._tell(record.slot)
        self.confirmed_at = max(self.confirmed_at, self._sent_at)
        return self.feed(ins.Committed(self._sent_at))

    def land_all(self) -> None:
        """Commit as long as there is anything to commit at once."""
        while self.in_flight is not None:
            self.land()

    def answer_poll(self) -> list[fx.Effect]:
        """The journal answers the poll with all that stands after the slot it named."""
        after, self.polling_after = self.polling_after, None
        assert after is not None
        found = self.log.after(after)
        if self.in_flight is None:
            self._tell(self.log.view.last_slot)
        self.confirmed_at = self.seconds
        return self.feed(ins.Polled(self.seconds, found))

    def cancel_elsewhere(self) -> None:
        """Another edge makes a cancel durable; the writer meets it when it appends or polls."""
        self.log.cancel()

    def taken_over(self) -> None:
        """Another edge takes the lease."""
        self.log.acquire("edge-b")

    def settle_and_close(self, seconds: float = 60.0) -> fx.Close:
        """Answer everything at once until the writer closes."""
        until = self.seconds + seconds
        while self.closed is None:
            self.land_all()
            if self.polling_after is not None and self.closed is None:
                self.answer_poll()
                continue
            wake_at = self.writer.wake_at()
            if wake_at is not None:
                assert wake_at <= until, "the turn hangs"
                self.wait(max(wake_at - self.seconds, 0.0))
        return self.closed

    # --- invariants -------------------------------------------------------------------------------

    def _check(self, effect: fx.Effect) -> None:
        assert self.closed is None, f"{effect} after the close"
        match effect:
            case fx.Append():
                self._check_append(effect.record)
            case fx.Show():
                for event in effect.events:
                    self._check_shown(event)
            case fx.Ack():
                self._check_ack(effect)
            case fx.Begin():
                self._check_begin(effect)
                self._next_index = 1
                self._indexes.clear()
            case fx.Poll():
                assert self.polling_after is None, "one poll at a time"
                self.polling_after = effect.after_slot

    def _check_append(self, record: AnyRecord) -> None:
        assert self.in_flight is None, "one append at a time"
        assert record.slot == self._told_slot + 1, "it appends after what it has read"
        assert record.writer == ME
        self.in_flight = record
        self._sent_at = self.seconds

    def known(self, event: Event) -> bool:
        """Whether the event is in the log, and the writer has been told so."""
        return self._known.get(event.seq) == event

    def _tell(self, slot: int) -> None:
        """The writer is being told of the log up to ``slot``."""
        for record in self.log.after(self._told_slot):
            if isinstance(record, Events) and record.slot <= slot:
                self._known |= {event.seq: event for event in record.events}
        self._told_slot = max(self._told_slot, slot)

    def _check_shown(self, event: Event) -> None:
        expected = self.shown[-1].seq + 1 if self.shown else event.seq
        assert event.seq == expected, "shown in order, each once"
        if not self.known(event):
            assert not event.structural, f"{event.type} was shown before it was committed"
            fresh_until = self.confirmed_at + self.settings.ttl_seconds - FENCE_MARGIN_SECONDS
            assert self.seconds < fresh_until, "shown on a lease that may be lost"
        self.shown.append(event)

    def _check_ack(self, ack: fx.Ack) -> None:
        assert not self.known_cancelled, "no gate opens after a known cancel"
        assert ack.attempt == self.turn.attempt
        covered = {call for call, index in self._indexes.items() if index <= ack.index}
        ready = {e.subject for e in self.shown if e.type == "tool_start" and self.known(e)}
        assert covered <= ready, "a gate opens after its tool_start was committed and shown"

    def _check_begin(self, begin: fx.Begin) -> None:
        starts = [e for e in self._known.values() if e.type == "turn_start"]
        assert f'"attempt":{begin.attempt},' in starts[-1].data, "an attempt is durable first"
        assert begin.attempt not in [b.attempt for b in self.all(fx.Begin)]
        assert not self.known_cancelled
