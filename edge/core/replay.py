"""The attach table: what a client that shows a cursor is told first.

Knows nothing of streams. One row of the table matches; the labels are those of PROTOCOL.md, and the table
is tried against every small log and cursor in its test.
"""

from __future__ import annotations

from dataclasses import dataclass

from edge.core.control import Reset, ResetReason, Rewind
from edge.core.cursor import START, Cursor
from edge.core.session import cursor_at

HOLD_LIMIT = 2_000
"""How many events ahead of the log a client of a live epoch may honestly be: the owner's bound on what it
shows uncommitted."""


@dataclass(frozen=True, slots=True)
class Served:
    """The log as the edge that answers can serve it now."""

    epoch: int
    first_seq: int
    last_seq: int
    """Newest seq that may be shown; at the owner this includes what is not committed yet."""
    epoch_starts: tuple[tuple[int, int], ...]
    running: bool
    """Whether a turn is under way, so that the newest epoch may still write."""
    floor_reason: ResetReason = "expired"
    """Why nothing before ``first_seq`` can be served."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Where a stream resumes, and what is said before its first event."""

    position: Cursor
    """The client has everything up to here, once it has obeyed ``control``."""
    control: Rewind | Reset | None = None


def decide_attach(cursor: Cursor | None, served: Served) -> Attachment:
    """Resolve a cursor (rows A to J). A follower has read the log to its end before it asks."""
    begin = Attachment(served_from(served))
    if cursor is None or cursor == START:
        return begin  # A: nothing shown yet
    if cursor.epoch == 0:
        kept = served.first_seq - 1 <= cursor.seq <= served.last_seq
        return Attachment(cursor) if kept else _reset("unknown", served)  # B: issued by a reset
    if cursor.epoch > served.epoch:
        return _reset("future", served)  # C: forged, another session's, or a restored backup
    if cursor.seq < served.first_seq - 1:
        return _reset(served.floor_reason, served)  # D
    if cursor.epoch == served.epoch and cursor.seq > served.last_seq:
        ahead = cursor.seq - served.last_seq
        held = served.running and ahead <= HOLD_LIMIT
        return Attachment(cursor) if held else _reset("future", served)  # E, F: ahead of the log
    return _within(cursor, served)


def _within(cursor: Cursor, served: Served) -> Attachment:
    """Rows G to J: the cursor's epoch is known, or older than every one that is."""
    known = [epoch for epoch, _ in served.epoch_starts]
    if cursor.epoch < min(known, default=0):
        return _reset("unknown", served)  # G: whether it survived can no longer be told
    fork = fork_after(cursor.epoch, served)
    if cursor.seq > fork:
        if fork < served.first_seq - 1:
            return _reset(served.floor_reason, served)  # H, but where it forked has expired
        return Attachment(position := cursor_at(served.epoch_starts, fork), Rewind(position))  # H
    kept = cursor.seq >= served.first_seq
    if kept and cursor_at(served.epoch_starts, cursor.seq).epoch < cursor.epoch:
        return _reset("unknown", served)  # I: no honest client can hold it
    return Attachment(cursor)  # J


def fork_after(epoch: int, served: Served) -> int:
    """Return the newest seq that a reader of ``epoch`` shares with the log.

    Not ``min(seq, last_seq)``: with several take-overs the first later epoch decides (row H).
    """
    later = [first_seq for other, first_seq in served.epoch_starts if other > epoch]
    return min(later) - 1 if later else served.last_seq


def served_from(served: Served) -> Cursor:
    """Return the position right before the oldest event still kept."""
    return START if served.first_seq <= 1 else Cursor(0, served.first_seq - 1)


def _reset(reason: ResetReason, served: Served) -> Attachment:
    return Attachment(served_from(served), Reset(reason, served.first_seq))
