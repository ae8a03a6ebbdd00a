"""The attach table: every row, every small world, and clients that saw what did not survive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.core.control import Reset, Rewind
from edge.core.cursor import START, Cursor
from edge.core.log import LogView
from edge.core.replay import HOLD_LIMIT, Attachment, Served, decide_attach, fork_after, served_from
from tests.core.log_builder import LogBuilder
from tests.core.samples import token

EPOCHS = ((1, 1), (2, 51), (3, 54))


def served(**changes: object) -> Served:
    """Three epochs, ninety events, a turn under way."""
    fields: dict[str, object] = {"epoch": 3, "first_seq": 1, "last_seq": 90, "running": True}
    return Served(**(fields | {"epoch_starts": EPOCHS} | changes))  # type: ignore[arg-type]


def reset(reason: str, first_seq: int = 1) -> Attachment:
    position = Cursor(0, first_seq - 1) if first_seq > 1 else START
    return Attachment(position, Reset(reason, first_seq))  # type: ignore[arg-type]


def rewind(epoch: int, seq: int) -> Attachment:
    return Attachment(Cursor(epoch, seq), Rewind(Cursor(epoch, seq)))


def after(epoch: int, seq: int) -> Attachment:
    return Attachment(Cursor(epoch, seq))


ROWS: list[tuple[str, Cursor | None, Served, Attachment]] = [
    ("A: no cursor", None, served(), Attachment(START)),
    ("A: the start", START, served(), Attachment(START)),
    ("A: the start after retention", START, served(first_seq=60), after(0, 59)),
    ("B: a reset's position that is kept", Cursor(0, 37), served(), after(0, 37)),
    ("B: right before the oldest kept", Cursor(0, 59), served(first_seq=60), after(0, 59)),
    ("B: trimmed since", Cursor(0, 58), served(first_seq=60), reset("unknown", 60)),
    ("B: beyond the log", Cursor(0, 91), served(), reset("unknown")),
    ("C: an epoch to come", Cursor(4, 1), served(), reset("future")),
    ("C: in an empty session", Cursor(1, 1), Served(0, 1, 0, (), False), reset("future")),
    ("D: retention", Cursor(3, 58), served(first_seq=60), reset("expired", 60)),
    ("D: a hole", Cursor(3, 58), served(first_seq=60, floor_reason="gap"), reset("gap", 60)),
    ("E: seven ahead of a live writer", Cursor(3, 97), served(), after(3, 97)),
    ("E: as far as honest", Cursor(3, 90 + HOLD_LIMIT), served(), after(3, 90 + HOLD_LIMIT)),
    ("F: further than honest", Cursor(3, 91 + HOLD_LIMIT), served(), reset("future")),
    ("F: no turn under way", Cursor(3, 97), served(running=False), reset("future")),
    ("F: the largest seq", Cursor(3, 10**12 - 1), served(), reset("future")),
    ("G: older than all named", Cursor(1, 60), served(epoch_starts=EPOCHS[1:]), reset("unknown")),
    ("H: the first later epoch decides", Cursor(1, 57), served(), rewind(1, 50)),
    ("H: from the epoch between", Cursor(2, 55), served(), rewind(2, 53)),
    ("H: nothing committed by the taker", Cursor(1, 57), served(last_seq=50), rewind(1, 50)),
    ("H: back to the start", Cursor(1, 3), Served(2, 1, 4, ((1, 1), (2, 1)), True), rewind(0, 0)),
    ("H: the fork has expired", Cursor(1, 80), served(first_seq=60), reset("expired", 60)),
    ("I: an id that nobody gave", Cursor(3, 53), served(), reset("unknown")),
    ("I: the epoch wrote nothing there", Cursor(2, 50), served(), reset("unknown")),
    ("J: at the end", Cursor(3, 90), served(), after(3, 90)),
    ("J: in an epoch that survived", Cursor(2, 53), served(), after(2, 53)),
    ("J: the last of an epoch", Cursor(1, 50), served(), after(1, 50)),
]


@pytest.mark.proves("S11", "S13", "S19", "T35", "T36", "T37", "P-RES-1")
@pytest.mark.parametrize(
    ("cursor", "log", "answer"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_each_row_of_the_table(cursor: Cursor | None, log: Served, answer: Attachment) -> None:
    assert decide_attach(cursor, log) == answer


@dataclass(frozen=True)
class World:
    """A small log, spelled out: who wrote each seq, and what is still kept of it."""

    writers: tuple[int, ...]
    """Epoch of the event at each seq, from 1."""
    starts: tuple[tuple[int, int], ...]
    """Every epoch that ever was."""
    first_seq: int
    named: int
    """How many of the newest epochs the log still names."""
    running: bool

    @property
    def served(self) -> Served:
        starts, last_seq = self.starts[-self.named :], len(self.writers)
        return Served(self.starts[-1][0], self.first_seq, last_seq, starts, self.running)

    def survivor(self, epoch: int) -> int:
        """Return the newest seq that a reader of ``epoch`` shares with the log, by looking at each."""
        return sum(1 for writer in self.writers if writer <= epoch)


def worlds() -> Iterator[World]:
    """Every log of up to four events and three epochs, with every floor."""
    for last_seq, newest in product(range(5), range(1, 4)):
        for later in combinations_with_replacement(range(1, last_seq + 2), newest - 1):
            starts = tuple(enumerate((1, *later), start=1))
            writers = tuple(
                max(epoch for epoch, first in starts if first <= seq)
                for seq in range(1, last_seq + 1)
            )
            for first_seq, running in product(range(1, last_seq + 2), (False, True)):
                for named in range(1, newest + 1):
                    yield World(writers, starts, first_seq, named, running)


CURSORS = [Cursor(epoch, seq) for epoch, seq in product(range(6), range(7))]


def row_of(cursor: Cursor, world: World) -> str:
    """Read the table of PROTOCOL.md by looking at each event; the first row that fits."""
    epoch, seq = cursor.epoch, cursor.seq
    newest, last_seq = world.starts[-1][0], len(world.writers)
    named = [e for e, _ in world.starts[-world.named :]]
    floor = world.first_seq - 1
    rows = {
        "A": cursor == START,
        "B": epoch == 0,
        "C": epoch > newest,
        "D": seq < floor,
        "E": epoch == newest and seq > last_seq and world.running,
        "F": epoch == newest and seq > last_seq,
        "G": epoch < named[0],
        "H": epoch < newest and seq > world.survivor(epoch),
        "I": world.first_seq <= seq <= world.survivor(epoch - 1),
        "J": True,
    }
    return next(row for row, fits in rows.items() if fits)


def expected(row: str, cursor: Cursor, world: World) -> Attachment:
    floor = world.first_seq - 1
    last_seq = len(world.writers)
    if row == "A":
        return Attachment(served_from(world.served))
    if row in "EJ" or (row == "B" and floor <= cursor.seq <= last_seq):
        return Attachment(cursor)
    seq = world.survivor(cursor.epoch)
    if row == "H" and seq >= floor:
        epoch = world.writers[seq - 1] if seq else 0
        named = epoch in [e for e, _ in world.served.epoch_starts]
        return rewind(epoch if named else 0, seq)
    reason = {"C": "future", "F": "future", "D": "expired", "H": "expired"}.get(row, "unknown")
    return reset(reason, world.first_seq)


@dataclass(frozen=True)
class Judged:
    """One cursor in one world, with what the table and the code say."""

    cursor: Cursor
    world: World
    row: str
    answer: Attachment

    @property
    def next_seq(self) -> int | None:
        """The seq that the client is sent next, unless it has to start anew."""
        anew = isinstance(self.answer.control, Reset)
        return None if anew else self.answer.position.seq + 1


@pytest.fixture(scope="module")
def everything() -> list[Judged]:
    """Every cursor in every small world."""
    cases = []
    for world in worlds():
        log = world.served
        cases += [Judged(c, world, row_of(c, world), decide_attach(c, log)) for c in CURSORS]
    return cases


@pytest.mark.proves("S13", "T36", "P-RES-1")
def test_every_cursor_in_every_small_world_gets_the_one_answer_of_its_row(
    everything: list[Judged],
) -> None:
    met: Counter[str] = Counter()
    for case in everything:
        assert case.answer == expected(case.row, case.cursor, case.world), case
        met[case.row] += 1
    assert set(met) == set("ABCDEFGHIJ")
    assert met.total() > 20_000


@pytest.mark.proves("S11", "T35")
def test_neither_a_resume_nor_a_rewind_promises_what_retention_took(
    everything: list[Judged],
) -> None:
    for case in everything:
        assert case.next_seq is None or case.next_seq >= case.world.first_seq, case


def test_a_control_says_where_the_client_stands_once_it_has_obeyed(
    everything: list[Judged],
) -> None:
    for case in everything:
        control, position = case.answer.control, case.answer.position
        if isinstance(control, Rewind):
            assert control.to == position
            assert position.seq < case.cursor.seq
        elif isinstance(control, Reset):
            assert control.first_seq == position.seq + 1 == case.world.first_seq
        else:
            assert case.row == "A" or position == case.cursor


def test_a_client_that_has_all_that_expired_goes_on_after_it() -> None:
    log = LogBuilder()
    log.acquire()
    log.write(token(), token(), token())
    log.write(token(), token())
    view = LogView()
    for record in log.records[2:]:
        view.apply(record)
    kept = Served(view.epoch, view.first_seq, view.last_seq, view.epoch_starts, True)
    assert decide_attach(Cursor(1, 3), kept) == after(1, 3)


def test_the_first_later_epoch_is_the_fork_though_it_wrote_nothing() -> None:
    log = Served(3, 1, 9, ((1, 1), (2, 5), (3, 5)), True)
    assert [fork_after(epoch, log) for epoch in (1, 2, 3)] == [4, 4, 9]


@dataclass(frozen=True)
class Tenure:
    """What one writer did before it died: it showed more than it committed."""

    shown: int
    committed: int


tenures = st.lists(
    st.integers(0, 6).flatmap(lambda n: st.builds(Tenure, st.just(n), st.integers(0, n))),
    min_size=1,
    max_size=5,
)


@pytest.mark.proves("S17", "P-SSE-6")
@settings(max_examples=200)
@given(tenures=tenures, data=st.data())
def test_whatever_a_client_saw_it_ends_with_the_log_that_survived(
    tenures: list[Tenure], data: st.DataObject
) -> None:
    log, views = LogBuilder(), []
    for number, tenure in enumerate(tenures):
        log.acquire(f"edge-{number}")
        epoch, before = log.view.epoch, log.events
        said = [token(f"{epoch}.{i}") for i in range(tenure.shown)]
        ahead = [(epoch, len(before) + 1 + i, d.data) for i, d in enumerate(said)]
        views.append([(e.epoch, e.seq, e.data) for e in before] + ahead)
        if tenure.committed:
            log.write(*said[: tenure.committed])
    survived = [(e.epoch, e.seq, e.data) for e in log.events]
    seen_at = data.draw(st.integers(0, len(views) - 1))
    seen = views[seen_at][: data.draw(st.integers(0, len(views[seen_at])))]
    cursor = Cursor(*seen[-1][:2]) if seen else None
    view = log.view
    running = data.draw(st.booleans()) or bool(seen and seen[-1][0] == view.epoch)
    answer = decide_attach(cursor, Served(view.epoch, 1, view.last_seq, view.epoch_starts, running))
    assert not isinstance(answer.control, Reset), "nothing is lost to an honest client"
    if isinstance(answer.control, Rewind):
        assert answer.position.seq < len(seen)
        seen = seen[: answer.position.seq]
    whole = seen + survived[answer.position.seq :]
    lives = bool(seen) and seen[-1][0] == view.epoch
    assert whole == survived or (lives and whole[: len(survived)] == survived)
