"""Time and retention, against a list of what was written: what has expired is absent, and never a hole in what is left.

Knows nothing of how a store forgets. A reader resolves a cursor and pages on from there as an edge does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from edge.core.control import Reset
from edge.core.cursor import START, Cursor
from edge.core.errors import LogBroken
from edge.core.event import Event
from edge.core.log import Acquire, AnyRecord, Cancel, Events, LogView
from edge.core.replay import Served, decide_attach
from edge.journal.rules import HEAD_OUTLIVES_LOG_SECONDS, LOG_RETENTION_SECONDS
from edge.ports import Journal, Renewal, SlotTaken
from tests.support.journal_records import ManualClock
from tests.support.journal_stores import MemoryStore, SqliteStore
from tests.support.machines import machine_settings

SESSION = "s1"
RETENTION_MS = int(LOG_RETENTION_SECONDS * 1000)
HEAD_MS = RETENTION_MS + int(HEAD_OUTLIVES_LOG_SECONDS * 1000)
skews = st.sampled_from([0.0, 0.0, -3.0, 3.0])
"""How far a writer's clock is from the store's, in hours."""
kinds = st.sampled_from(["writes", "writes", "writes", "acquires", "cancels"])
works = st.lists(
    st.tuples(kinds, skews, st.sampled_from([0.0, 2.0, 6.0, 6.0, 20.0])), min_size=3, max_size=6
)
tabs = st.sets(st.integers(1, 24), min_size=1, max_size=4)
"""How many events ago each of them left."""
pages = st.sampled_from([1, 2, 100])


class RetentionMachine(RuleBasedStateMachine):
    """One session of one store, written by owners that outlive what they wrote."""

    make: Callable[[Path], MemoryStore | SqliteStore]

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.store = self.make(Path(self.folder.name))
        self.clock: ManualClock = self.store._clock
        self.written: list[AnyRecord] = []
        self.view = LogView()  # the writer's, which never forgets
        self.journal: Journal = self.do(self.store.open())
        self.do(self.journal.create_session(SESSION, "uid-1"))
        self.head_until = self.clock.ms + HEAD_MS
        self.acquires(0.0)

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @property
    def live(self) -> list[AnyRecord]:
        return [record for record in self.written if record.expire_at_ms > self.clock.ms]

    # --- writers and time -------------------------------------------------------------------------

    def common(self, skew: float) -> dict[str, Any]:
        """Return what every record says; its expiry never goes back, whatever a writer's clock says."""
        wanted = self.clock.ms + int(skew * 3_600_000) + RETENTION_MS
        expire_at_ms = max(self.view.expire_at_ms, wanted)
        return {"slot": self.view.last_slot + 1, "expire_at_ms": expire_at_ms}

    def put(self, record: AnyRecord) -> None:
        self.view.apply(record)
        self.do(self.journal.append(SESSION, [record]))
        self.written.append(record)

    @rule(days=works, backs=tabs, limit=pages)
    def is_used_for_a_while(
        self, days: list[tuple[str, float, float]], backs: set[int], limit: int
    ) -> None:
        """It is written, more or less often; its owner renews its head as it does."""
        for kind, skew, passed in days:
            getattr(self, kind)(skew)
            self.renews()
            self.clock.advance(hours=passed)
        self.asks_for_the_head()
        self.tabs_come_back(backs, limit)

    def acquires(self, skew: float) -> None:
        epoch = self.view.epoch + 1
        starts, last_seq = self.view.next_epoch_starts(), self.view.last_seq
        common = self.common(skew) | {"writer": f"edge-{epoch}", "last_seq": last_seq}
        self.put(Acquire(epoch=epoch, epoch_starts=starts, **common))

    def writes(self, skew: float) -> None:
        view = self.view
        seqs = range(view.last_seq + 1, view.last_seq + 3)
        run = tuple(Event(view.epoch, seq, "token", f'{{"text":"{seq}"}}') for seq in seqs)
        common = self.common(skew) | {"writer": view.holder, "last_seq": run[-1].seq}
        slot = view.acquire_slot
        self.put(Events(epoch=view.epoch, acquire_slot=slot, events=run, **common))

    def cancels(self, skew: float) -> None:
        common = self.common(skew) | {"writer": "edge-z", "last_seq": self.view.last_seq}
        self.put(Cancel(epoch=self.view.epoch, turn_id="t1", **common))

    def renews(self) -> None:
        """It makes the head last longer, unless it is gone already."""
        renewal = Renewal(self.view.epoch, self.view.last_slot)
        self.do(self.journal.renew(SESSION, renewal))
        if self.head_until > self.clock.ms:
            self.head_until = max(self.head_until, self.clock.ms + HEAD_MS)

    @rule(passed=st.sampled_from([1.0, 5.0, 5.0, 25.0, 100.0]))
    def is_left_alone(self, passed: float) -> None:
        self.clock.advance(hours=passed)

    @rule()
    def another_process_opens_the_store(self) -> None:
        self.journal = self.do(self.store.open())

    # --- readers ----------------------------------------------------------------------------------

    @rule(back=st.integers(0, 12), limit=pages)
    def reads(self, back: int, limit: int) -> None:
        after = max(self.view.last_slot - back, 0)
        page = self.do(self.journal.read(SESSION, after, limit))
        rest = [record for record in self.live if record.slot > after]
        assert list(page.records) == rest[:limit]
        assert page.more == (len(rest) > limit)
        slots = [record.slot for record in page.records]
        assert slots == list(range(slots[0], slots[0] + len(slots))) if slots else True

    @rule(back=st.integers(-1, 20))
    def locates(self, back: int) -> None:
        seq = max(self.view.last_seq - back, 1)
        found = next((record.slot for record in self.live if record.last_seq >= seq), None)
        assert self.do(self.journal.locate(SESSION, seq)) == found

    @rule()
    def asks_for_the_head(self) -> None:
        head = self.do(self.journal.head(SESSION))
        assert (head is not None) == (self.head_until > self.clock.ms)

    @rule(slot=st.integers(0, 12))
    def writes_where_a_record_is(self, slot: int) -> None:
        """A slot is never used twice as long as its record is kept."""
        if slot < len(self.live):
            with pytest.raises(SlotTaken):
                self.do(self.journal.append(SESSION, [self.live[slot]]))

    @rule(backs=tabs, limit=pages)
    def tabs_come_back(self, backs: set[int], limit: int) -> None:
        """With nothing, or with the id of any event that ever was."""
        events = [e for r in self.written if isinstance(r, Events) for e in r.events]
        ids = [Cursor(event.epoch, event.seq) for event in events]
        for back in sorted(backs):
            self.do(self.resume(ids[-back] if back <= len(ids) else START, limit))

    async def resume(self, cursor: Cursor, limit: int) -> None:
        view = await self.read_all(limit)
        if not view.last_slot:
            assert not self.live
            return  # the session has expired, and says so
        kept = [e for r in self.live if isinstance(r, Events) for e in r.events]
        starts = view.epoch_starts
        served = Served(view.epoch, view.first_seq, view.last_seq, starts, running=True)
        answer = decide_attach(cursor, served)
        if isinstance(answer.control, Reset):
            first = kept[0].seq if kept else self.view.last_seq + 1
            assert answer.control.first_seq == first
            known = min((epoch for epoch, _ in starts), default=0)
            assert cursor.seq < first - 1 or cursor.epoch < known
        elif cursor != START:
            assert answer.position == cursor
        told = await self.page(answer.position.seq, limit)
        assert told == [event for event in kept if event.seq > answer.position.seq]
        seqs = [event.seq for event in told]
        assert seqs == list(range(answer.position.seq + 1, view.last_seq + 1)), "a hole"

    async def read_all(self, limit: int) -> LogView:
        """Fold the log as a room does that opens it now."""
        view, slot, more = LogView(), 0, True
        while more:
            page = await self.journal.read(SESSION, slot, limit)
            more = page.more
            for record in page.records:
                slot = record.slot
                try:
                    view.apply(record)
                except LogBroken:  # a log that begins with a decision does not say who may write
                    view = LogView()
                    view.apply(record)
        return view

    async def page(self, seq: int, limit: int) -> list[Event]:
        """Return what a viewer is shown that has everything up to ``seq``."""
        located = await self.journal.locate(SESSION, seq + 1)
        slot, more = (located or 1) - 1, located is not None
        told: list[Event] = []
        while more:
            page = await self.journal.read(SESSION, slot, limit)
            slot, more = page.records[-1].slot, page.more
            runs = [record.events for record in page.records if isinstance(record, Events)]
            told += [event for run in runs for event in run if event.seq > seq]
        return told

    def teardown(self) -> None:
        self.do(self.store.close())
        self.runner.close()
        self.folder.cleanup()


@pytest.mark.timeout(600)
@pytest.mark.proves("S11", "S14", "T35", "P-LOG-14")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_whatever_expires_readers_get_the_rest_without_a_hole_or_are_told(kind: str) -> None:
    def make(folder: Path) -> MemoryStore | SqliteStore:
        return MemoryStore() if kind == "memory" else SqliteStore(folder / "journal.db")

    machine = type("RetentionMachine", (RetentionMachine,), {"make": staticmethod(make)})
    run_state_machine_as_test(machine, settings=machine_settings(40, 30))
