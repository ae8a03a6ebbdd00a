"""The slot log's view: what no correct writer could have written is refused, and told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edge.core.errors import LogBroken
from edge.core.log import EPOCH_STARTS_KEPT, Acquire, AnyRecord, Events, LogView
from tests.core.log_builder import EXPIRE_MS, LogBuilder, numbered
from tests.core.samples import start, token


def two_epochs() -> LogBuilder:
    """Two writers, three events each, and somebody's cancel."""
    log = LogBuilder()
    log.acquire("edge-a")
    log.write(start(), token(), token())
    log.acquire("edge-b")
    log.write(start(2), token(), token())
    log.cancel()
    return log


def view_of(*records: AnyRecord) -> LogView:
    view = LogView()
    for record in records:
        view.apply(record)
    return view


def test_a_view_knows_the_newest_of_everything() -> None:
    log = two_epochs()
    view = view_of(*log.records)
    assert (view.last_slot, view.last_seq, view.first_seq) == (5, 6, 1)
    assert (view.epoch, view.holder, view.acquire_slot) == (2, "edge-b", 3)
    assert view.epoch_starts == ((1, 1), (2, 4))
    assert view.expire_at_ms == EXPIRE_MS


def _next(log: LogBuilder, kind: str) -> AnyRecord:
    """Return a well-formed record for the next slot; the log itself stays as it is."""
    copy = LogBuilder()
    for record in log.records:
        copy.put(record)
    made = copy.write(token(), token()) if kind == "write" else getattr(copy, kind)()
    assert isinstance(made, AnyRecord)
    return made


IMPOSSIBLE: dict[str, tuple[str, dict[str, object]]] = {
    "a hole in the slots": ("write", {"slot": 7}),
    "a slot twice": ("cancel", {"slot": 5}),
    "an expiry that goes down": ("write", {"expire_at_ms": EXPIRE_MS - 1}),
    "a decision's expiry that goes down": ("cancel", {"expire_at_ms": EXPIRE_MS - 1}),
    "an epoch that is skipped": ("acquire", {"epoch": 4, "epoch_starts": ((4, 7),)}),
    "an epoch that is taken twice": ("acquire", {"epoch": 2, "epoch_starts": ((2, 7),)}),
    "an epoch that starts too late": ("acquire", {"epoch_starts": ((3, 8),)}),
    "an epoch that starts too early": ("acquire", {"epoch_starts": ((3, 6),)}),
    "an epoch without a start": ("acquire", {"epoch_starts": ()}),
    "an acquire that names another epoch last": ("acquire", {"epoch_starts": ((3, 7), (2, 4))}),
    "an acquire that brings a seq": ("acquire", {"last_seq": 7, "epoch_starts": ((3, 8),)}),
    "events of an older epoch": ("write", {"epoch": 1}),
    "events of a future epoch": ("write", {"epoch": 3}),
    "events of another writer": ("write", {"writer": "edge-a"}),
    "events after a gap": ("write", {"events": numbered([token()], 8, 2), "last_seq": 8}),
    "events that repeat a seq": ("write", {"events": numbered([token()], 6, 2), "last_seq": 6}),
    "events out of order": (
        "write",
        {"events": tuple(reversed(numbered([token(), token()], 7, 2)))},
    ),
    "fewer events than announced": ("write", {"last_seq": 9}),
    "more events than announced": ("write", {"last_seq": 7}),
    "a record of no events": ("write", {"events": (), "last_seq": 6}),
    "a cancel that brings a seq": ("cancel", {"last_seq": 7}),
    "a cancel of an unknown epoch": ("cancel", {"epoch": 3}),
    "a decision that takes a seq": ("resolve", {"last_seq": 5}),
    "a decision of an unknown epoch": ("resolve", {"epoch": 3}),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_an_impossible_record_is_refused(case: str) -> None:
    log = two_epochs()
    kind, changes = IMPOSSIBLE[case]
    record = replace(_next(log, kind), **changes)  # type: ignore[arg-type]
    before = view_of(*log.records)
    with pytest.raises(LogBroken):
        log.view.apply(record)
    assert log.view == before, "nothing is taken in of it"


@pytest.mark.parametrize("kind", ["acquire", "write", "cancel", "resolve"])
def test_the_record_that_continues_the_log_is_taken(kind: str) -> None:
    log = two_epochs()
    log.view.apply(_next(log, kind))


def test_a_decision_may_name_an_older_epoch_than_the_newest() -> None:
    log = two_epochs()
    log.view.apply(replace(_next(log, "cancel"), epoch=1))


@pytest.mark.proves("P-LOG-14")
@pytest.mark.parametrize("kept_from", [2, 3, 4, 5])
def test_a_log_whose_beginning_has_expired_is_read_from_where_it_starts(kept_from: int) -> None:
    log = two_epochs()
    whole = view_of(*log.records)
    view = view_of(*log.records[kept_from - 1 :])
    assert (view.last_slot, view.last_seq, view.epoch) == (5, 6, 2)
    assert view.first_seq == {2: 1, 3: 4, 4: 4, 5: 7}[kept_from]
    if kept_from < 5:
        assert view.holder == whole.holder
        assert view.acquire_slot == whole.acquire_slot
    assert set(view.epoch_starts) <= set(whole.epoch_starts)


def test_a_log_that_begins_with_events_goes_on_with_the_same_writers_next() -> None:
    log = two_epochs()
    view = view_of(log.records[3])
    view.apply(log.records[4])
    assert view.next_epoch_starts() == ((2, 4), (3, 7))


def test_a_log_that_begins_with_a_record_of_no_events_is_broken() -> None:
    first = two_epochs().records[1]
    assert isinstance(first, Events)
    with pytest.raises(LogBroken):
        LogView().apply(replace(first, events=(), last_seq=0))


def test_an_acquire_names_the_newest_sixty_four_epochs() -> None:
    log = LogBuilder()
    for _ in range(EPOCH_STARTS_KEPT + 6):
        log.acquire()
        log.write(token())
    newest = [r for r in log.records if isinstance(r, Acquire)][-1]
    assert len(newest.epoch_starts) == EPOCH_STARTS_KEPT == 64
    assert newest.epoch_starts[0] == (7, 7)
    assert newest.epoch_starts[-1] == (70, 70)
