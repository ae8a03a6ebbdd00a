"""Cursors of browsers that live through take-overs and retention, against what really happened.

Knows nothing of streams. The model is two dicts: the event that survived at each seq, and what each tab has on its
screen. From these it says how a cursor must resolve; where an epoch began is asked only to know whether an edge was
told of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    rule,
    run_state_machine_as_test,
)

from edge.core.control import Reset, ResetReason, Rewind
from edge.core.cursor import START, Cursor
from edge.core.event import Draft, Event
from edge.core.log import EPOCH_STARTS_KEPT, Acquire, Events, LogView
from edge.core.replay import Attachment, Served, decide_attach
from tests.core.log_builder import LogBuilder, numbered
from tests.core.samples import custom, done, start, token
from tests.support.machines import machine_settings

TABS = 2
ENDS = ["", "", "", "custom", "done"]
tabs = st.integers(0, TABS - 1)
places = st.sampled_from(["owner", "owner", "follower", "stranger", "sleeper"])
unseen_epochs = st.sampled_from([0, 0, 0, 0, 1, 1, EPOCH_STARTS_KEPT - 2, EPOCH_STARTS_KEPT])
amounts = st.sampled_from([0, 1, 3, 100])


@dataclass(eq=False)
class Edge:
    """What one process knows of the log; it may have begun to read after much had expired."""

    view: LogView = field(default_factory=LogView)
    read: dict[int, Event] = field(default_factory=dict)
    ahead: list[Draft] = field(default_factory=list)
    """What it shows and has not committed, if it is an owner."""
    floor_reason: ResetReason = "expired"

    @property
    def shown(self) -> dict[int, Event]:
        ahead = numbered(self.ahead, self.view.last_seq + 1, self.view.epoch)
        return self.read | {event.seq: event for event in ahead}

    @property
    def last_seq(self) -> int:
        return self.view.last_seq + len(self.ahead)

    @property
    def floor(self) -> int:
        return self.view.first_seq - 1

    def reads_on(self, log: LogBuilder, expired: int) -> Edge:
        """Read to the end; return the edge, or one that begins anew, if it was overtaken by retention."""
        overtaken = self.view.last_slot < expired
        edge = Edge(floor_reason="gap") if overtaken and self.view.last_slot else self
        for record in log.records[max(edge.view.last_slot, expired) :]:
            edge.view.apply(record)
            if isinstance(record, Events):
                edge.read |= {event.seq: event for event in record.events}
        return edge


@dataclass
class Tab:
    """A browser's tab: its cursor, its screen, and the edge that it listens to."""

    cursor: Cursor = START
    screen: dict[int, Event] = field(default_factory=dict)
    edge: Edge | None = None
    epoch: int = 0
    """The epoch that its stream was resolved in."""

    def obey(self, answer: Attachment) -> None:
        if isinstance(answer.control, Rewind):
            lost = [event for event in self.screen.values() if event.seq > answer.position.seq]
            assert not any(event.structural for event in lost), "a rewind takes back tokens only"
            self.screen = {s: e for s, e in self.screen.items() if s <= answer.position.seq}
        elif isinstance(answer.control, Reset):
            self.screen = {}
        self.cursor = answer.position

    def take(self, event: Event) -> None:
        assert event.seq == self.cursor.seq + 1, "a hole"
        self.screen[event.seq] = event
        self.cursor = Cursor(event.epoch, event.seq)


class CursorMachine(RuleBasedStateMachine):
    """One session: owners that show more than they commit, a follower, and tabs that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.log = LogBuilder()
        self.expired = 0  # how many records are gone
        self.running = False
        self.said = 0
        self.tabs = [Tab() for _ in range(TABS)]
        self.log.acquire("edge-0")
        self.owner = Edge().reads_on(self.log, 0)
        self.sleeper = self.owner
        self.follower = Edge().reads_on(self.log, 0)
        self.the_owner_works(shown=3, committed=1, ends="")
        for number in range(TABS):
            self.comes_back(number, "owner", 1)

    # --- what edges and time do -------------------------------------------------------------------

    @rule(shown=st.integers(0, 5), committed=st.integers(0, 5), ends=st.sampled_from(ENDS))
    def the_owner_works(self, shown: int, committed: int, ends: str) -> None:
        """It shows tokens at once, and commits some; or everything, and something structural."""
        if not self.running:
            self.commit(0, start())
            self.running = True
        self.show(self.owner, shown)
        if ends:
            self.running = ends == "custom"
            self.commit(len(self.owner.ahead), custom() if self.running else done())
        else:
            self.commit(committed)

    @rule(shown=st.integers(0, 3))
    def a_fenced_owner_goes_on_showing(self, shown: int) -> None:
        if self.sleeper.view.epoch < self.log.view.epoch:
            self.show(self.sleeper, shown)

    @rule(by_follower=st.booleans(), unseen=unseen_epochs)
    def take_over(self, by_follower: bool, unseen: int) -> None:
        """What the old owner shows and has not committed is lost; it may not know that yet."""
        self.follower_reads()
        for _ in range(unseen):
            self.log.acquire("died at once")
        self.log.acquire(f"edge-{self.log.view.epoch}")
        self.sleeper = self.owner
        taker = self.follower if by_follower else Edge()
        self.owner = taker.reads_on(self.log, self.expired)
        if by_follower:
            self.follower = Edge().reads_on(self.log, self.expired)

    @rule(share=st.sampled_from([0.1, 0.2, 0.5, 1.0]), names_epochs=st.booleans())
    def old_records_expire(self, share: float, names_epochs: bool) -> None:
        """Never the last one: of a session without a log nothing is served."""
        gone = self.expired + math.ceil(share * (len(self.log.records) - 1 - self.expired))
        if names_epochs:  # what is left begins with a record that knows what was before
            acquires = [n for n, r in enumerate(self.log.records) if isinstance(r, Acquire)]
            gone = max(n for n in acquires if n <= gone)
        self.expired = max(self.expired, gone)

    def show(self, edge: Edge, count: int) -> None:
        for _ in range(count):
            self.said += 1
            edge.ahead.append(token(f"word {self.said}"))

    def commit(self, count: int, *structural: Draft) -> None:
        drafts = [*self.owner.ahead[:count], *structural]
        if drafts:
            self.log.write(*drafts)
        del self.owner.ahead[:count]
        self.owner = self.owner.reads_on(self.log, self.expired)

    def follower_reads(self) -> None:
        self.follower = self.follower.reads_on(self.log, self.expired)

    # --- what tabs do -----------------------------------------------------------------------------

    @rule(number=tabs, place=places, most=amounts)
    def comes_back(self, number: int, place: str, most: int) -> None:
        tab = self.tabs[number]
        if place == "stranger":
            self.follower = Edge()
        self.follower_reads()
        edge = {"owner": self.owner, "sleeper": self.sleeper}.get(place, self.follower)
        if (
            tab.cursor.epoch <= edge.view.epoch
        ):  # P-LOG-6: else it reads on, and learns that it slept
            tab.edge = edge
            self.resolve(tab, edge)
            self.listen(tab, edge, most)

    @rule(number=tabs, most=amounts)
    def reads_on(self, number: int, most: int) -> None:
        tab = self.tabs[number]
        self.follower_reads()
        edge = tab.edge
        if edge is None or edge not in (self.owner, self.follower, self.sleeper):
            return  # its process is gone
        if edge.view.epoch != tab.epoch:  # P-RES-2
            self.resolve(tab, edge)
        self.listen(tab, edge, most)

    def resolve(self, tab: Tab, edge: Edge) -> None:
        answer = self.resolved(tab.cursor, edge)
        assert answer == self.expected(tab, edge)
        tab.obey(answer)
        tab.epoch = edge.view.epoch

    def listen(self, tab: Tab, edge: Edge, most: int) -> None:
        """Take what comes next, and look at the whole screen."""
        shown = edge.shown
        for seq in range(tab.cursor.seq + 1, min(tab.cursor.seq + most, edge.last_seq) + 1):
            tab.take(shown[seq])
        truth = self.truth(edge)
        assert all(truth[s] == e for s, e in tab.screen.items() if s <= edge.last_seq)

    @rule(epoch=st.integers(0, 4), seq=st.integers(0, 30))
    def somebody_makes_up_a_cursor(self, epoch: int, seq: int) -> None:
        """It is refused unless an honest tab could hold it here."""
        self.follower_reads()
        edge, cursor = self.follower, Cursor(epoch, seq)
        answer = self.resolved(cursor, edge)
        if answer.control is None and epoch and edge.floor < seq <= edge.last_seq:
            assert self.truth(edge)[seq].epoch == epoch
        if not isinstance(answer.control, Reset):
            assert answer.position.seq >= edge.floor

    # --- the model --------------------------------------------------------------------------------

    def resolved(self, cursor: Cursor, edge: Edge) -> Attachment:
        view = edge.view
        starts, reason = view.epoch_starts, edge.floor_reason
        running = self.running or edge is self.sleeper
        log = Served(view.epoch, view.first_seq, edge.last_seq, starts, running, reason)
        return decide_attach(cursor, log)

    def truth(self, edge: Edge) -> dict[int, Event]:
        """Return every event as this edge would show it, also what had expired before it came."""
        return {
            event.seq: event for event in self.log.events if event.seq <= edge.floor
        } | edge.shown

    def expected(self, tab: Tab, edge: Edge) -> Attachment:
        cursor, floor, last_seq = tab.cursor, edge.floor, edge.last_seq
        begin = Cursor(0, floor)
        if cursor == START:
            return Attachment(begin)
        if cursor.epoch == 0:  # all that it has was told to it as a position
            assert cursor.seq <= last_seq or edge is self.sleeper
            kept = floor <= cursor.seq <= last_seq
            return Attachment(cursor) if kept else Attachment(begin, Reset("unknown", floor + 1))
        if cursor.seq < floor:
            return Attachment(begin, Reset(edge.floor_reason, floor + 1))
        if cursor.epoch == edge.view.epoch and cursor.seq > last_seq:
            return Attachment(cursor)  # held: its owner has shown this and will commit it
        starts = dict(edge.view.epoch_starts)
        if cursor.epoch not in starts:
            return Attachment(begin, Reset("unknown", floor + 1))
        truth = self.truth(edge)
        agreed = cursor.seq
        while agreed in tab.screen and truth.get(agreed) != tab.screen[agreed]:
            agreed -= 1
        if agreed == cursor.seq:
            return Attachment(cursor)
        if agreed < floor:
            return Attachment(begin, Reset(edge.floor_reason, floor + 1))
        epoch = truth[agreed].epoch if agreed else 0
        position = Cursor(epoch if starts.get(epoch, math.inf) <= agreed else 0, agreed)
        return Attachment(position, Rewind(position))


@pytest.mark.timeout(600)
@pytest.mark.proves("S11", "S13", "S17", "T36", "P-RES-1", "P-RES-2")
def test_whatever_happens_a_cursor_resolves_to_what_really_survived() -> None:
    run_state_machine_as_test(CursorMachine, settings=machine_settings(200, 40))
