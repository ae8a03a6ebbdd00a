"""The SQL of the SQLite journal: its schema, and one function per thing it can be asked.

Knows nothing of asyncio, threads or transactions: ``edge.journal.sqlite_threads`` calls these, each
on the thread of its connection, and those that write inside a savepoint.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edge.core.errors import JournalUnavailable
from edge.core.event import compact_json
from edge.core.log import AnyRecord
from edge.journal.codec import HEADER, body_of, decode, header_of, kind_of
from edge.journal.rules import age_seconds, turn_expiry_ms
from edge.ports import Head, Page, Renewal, SlotTaken, TurnEntry

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE sessions (
  session_id TEXT PRIMARY KEY, owner TEXT NOT NULL, epoch INTEGER NOT NULL DEFAULT 0,
  last_slot INTEGER NOT NULL DEFAULT 0, renewed_at_ms INTEGER, watched_at_ms INTEGER,
  expire_at_ms INTEGER NOT NULL) STRICT;
CREATE TABLE log (
  session_id TEXT NOT NULL, slot INTEGER NOT NULL, epoch INTEGER NOT NULL, writer TEXT NOT NULL,
  last_seq INTEGER NOT NULL, expire_at_ms INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (session_id, slot)) STRICT;
CREATE TABLE turns (
  session_id TEXT NOT NULL, turn_id TEXT NOT NULL, body_hash TEXT NOT NULL, slot INTEGER NOT NULL,
  expire_at_ms INTEGER NOT NULL, PRIMARY KEY (session_id, turn_id)) STRICT;
CREATE INDEX log_by_seq ON log (session_id, last_seq);
CREATE INDEX sessions_by_expiry ON sessions (expire_at_ms);
CREATE INDEX log_by_expiry ON log (expire_at_ms);
CREATE INDEX turns_by_expiry ON turns (expire_at_ms);
"""

SWEEP_GRACE_MS = 24 * 3600 * 1000
"""Expired rows stay this long on disk, as in Firestore: a clock that leapt ahead loses nothing."""

SWEEP_ROWS = 8
"""An append removes up to so many rows per table: more than it adds, and never enough to be felt."""

_SWEEP = (
    "DELETE FROM log WHERE rowid IN"
    " (SELECT rowid FROM log WHERE expire_at_ms <= ? ORDER BY expire_at_ms LIMIT ?)",
    "DELETE FROM turns WHERE rowid IN"
    " (SELECT rowid FROM turns WHERE expire_at_ms <= ? ORDER BY expire_at_ms LIMIT ?)",
    "DELETE FROM sessions WHERE rowid IN"
    " (SELECT rowid FROM sessions WHERE expire_at_ms <= ? ORDER BY expire_at_ms LIMIT ?)",
)

_CACHE_KIB = 256
_SWITCH_TRIES = 10
_TAKEN = {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}


def open_database(
    path: Path, busy_timeout_seconds: float, open_timeout_seconds: float
) -> sqlite3.Connection:
    """Open the journal's file, make it if there is none, and bring it to the current schema.

    Another process may hold it for ``open_timeout_seconds`` now, for ``busy_timeout_seconds`` later.

    Raises:
        JournalUnavailable: with one line that says why not.
    """
    path = path.absolute()
    if not os.path.isdir(path.parent):  # noqa: PTH112 - ``Path.is_dir`` raises without permission
        raise JournalUnavailable(f"no folder {path.parent} for the journal")
    try:
        db = sqlite3.connect(path, timeout=open_timeout_seconds, isolation_level=None)
    except sqlite3.Error as error:
        raise JournalUnavailable(f"cannot open the journal {path}: {error}") from error
    try:
        _configure(db)
        db.execute(f"PRAGMA busy_timeout={int(busy_timeout_seconds * 1000)}")
    except (sqlite3.Error, JournalUnavailable) as error:
        db.close()
        raise JournalUnavailable(f"cannot use the journal {path}: {error}") from error
    return db


def _configure(db: sqlite3.Connection) -> None:
    # WAL: readers never wait for the writer, and one commit is one append to one file.
    if _switch_to_wal(db) != "wal":
        raise JournalUnavailable("its file system cannot hold a write-ahead log")
    # With NORMAL a commit in WAL mode is not synced: a power cut would take back what was
    # acknowledged, and a client would have seen events that never were.
    db.execute("PRAGMA synchronous=FULL")
    # What is read is new, and the kernel has it: the default of 2 MB for each connection only fills up.
    db.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    # Takes the write lock even if there is nothing to do, so a read-only file shows now.
    db.execute("BEGIN IMMEDIATE")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise JournalUnavailable(
            f"it has schema {version}, and this program knows {SCHEMA_VERSION}"
        )
    if version == 0:
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
    db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    db.execute("COMMIT")


def _switch_to_wal(db: sqlite3.Connection) -> str:
    """Return the mode that the journal's file has now.

    Processes that make the file together each hold it shared when they want it alone. SQLite refuses
    all but one of them at once, whatever the time-out, lest they wait for each other for ever. So
    who is refused lets go, waits in the queue of writers, and asks again.
    """
    for _ in range(_SWITCH_TRIES):
        try:
            (mode,) = db.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        else:
            return str(mode)
    raise JournalUnavailable("too many others open it at once")


def create_session(db: sqlite3.Connection, session_id: str, owner: str, expire_at_ms: int) -> None:
    """Insert a head. Raises ``SlotTaken``."""
    with _slot_taken():
        db.execute(
            "INSERT INTO sessions (session_id, owner, expire_at_ms) VALUES (?, ?, ?)",
            (session_id, owner, expire_at_ms),
        )


def append(
    db: sqlite3.Connection,
    session_id: str,
    records: Sequence[AnyRecord],
    turn: TurnEntry | None,
    now_ms: int,
) -> None:
    """Insert records and a turn entry. Raises ``SlotTaken``: the savepoint must be rolled back."""
    with _slot_taken():
        db.executemany(
            "INSERT INTO log VALUES (:session_id, :slot, :epoch, :writer, :last_seq, :expire_at_ms,"
            " :kind, :body)",
            [_row_of(session_id, record) for record in records],
        )
        if turn is not None:
            db.execute(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?)",
                (session_id, turn.turn_id, turn.body_hash, turn.slot, turn_expiry_ms(records)),
            )
    _sweep(db, now_ms)


def read(db: sqlite3.Connection, session_id: str, after_slot: int, limit: int, now_ms: int) -> Page:
    """Select a run of live records."""
    rows = db.execute(
        "SELECT kind, body, slot, epoch, writer, last_seq, expire_at_ms FROM log"
        " WHERE session_id = ? AND slot > ? AND expire_at_ms > ? ORDER BY slot LIMIT ?",
        (session_id, after_slot, now_ms, limit + 1),
    ).fetchall()
    return Page([_record_of(row) for row in rows[:limit]], more=len(rows) > limit)


def locate(db: sqlite3.Connection, session_id: str, seq: int, now_ms: int) -> int | None:
    """Select the slot of the first live record that reaches ``seq``."""
    row = db.execute(
        "SELECT slot FROM log WHERE session_id = ? AND last_seq >= ? AND expire_at_ms > ?"
        " ORDER BY last_seq, slot LIMIT 1",
        (session_id, seq, now_ms),
    ).fetchone()
    return None if row is None else int(row[0])


def turn(db: sqlite3.Connection, session_id: str, turn_id: str) -> TurnEntry | None:
    """Select a turn entry that has not been swept."""
    row = db.execute(
        "SELECT turn_id, body_hash, slot FROM turns WHERE session_id = ? AND turn_id = ?",
        (session_id, turn_id),
    ).fetchone()
    return None if row is None else TurnEntry(*row)


def head(db: sqlite3.Connection, session_id: str, now_ms: int) -> Head | None:
    """Select a live head."""
    row = db.execute(
        "SELECT owner, epoch, last_slot, renewed_at_ms, watched_at_ms"
        " FROM sessions WHERE session_id = ? AND expire_at_ms > ?",
        (session_id, now_ms),
    ).fetchone()
    if row is None:
        return None
    owner, epoch, last_slot, renewed_at_ms, watched_at_ms = row
    return Head(
        owner=owner,
        epoch=epoch,
        last_slot=last_slot,
        renewed_seconds_ago=age_seconds(now_ms, renewed_at_ms),
        renewed_at_ms=renewed_at_ms or 0,
        watched_seconds_ago=age_seconds(now_ms, watched_at_ms),
    )


def renew(
    db: sqlite3.Connection, session_id: str, renewal: Renewal, now_ms: int, expire_at_ms: int
) -> None:
    """Update a live head of the same or an older epoch."""
    db.execute(
        "UPDATE sessions SET epoch = :epoch, last_slot = :last_slot, renewed_at_ms = :renewed_at_ms,"
        " expire_at_ms = max(expire_at_ms, :expire_at_ms)"
        " WHERE session_id = :session_id AND epoch <= :epoch AND expire_at_ms > :now_ms",
        {
            "session_id": session_id,
            "epoch": renewal.epoch,
            "last_slot": renewal.last_slot,
            "renewed_at_ms": None if renewal.released else now_ms,
            "expire_at_ms": expire_at_ms,
            "now_ms": now_ms,
        },
    )


def watch(db: sqlite3.Connection, session_id: str, now_ms: int) -> None:
    """Update when a live head was last watched."""
    db.execute(
        "UPDATE sessions SET watched_at_ms = ? WHERE session_id = ? AND expire_at_ms > ?",
        (now_ms, session_id, now_ms),
    )


def check(db: sqlite3.Connection) -> None:
    """Read something."""
    db.execute("SELECT 1 FROM sessions LIMIT 1").fetchone()


def _row_of(session_id: str, record: AnyRecord) -> dict[str, Any]:
    body = compact_json(body_of(record))
    return {"session_id": session_id, **header_of(record), "kind": kind_of(record), "body": body}


def _record_of(row: Sequence[Any]) -> AnyRecord:
    kind, body, *header = row
    return decode(kind, dict(zip(HEADER, header, strict=True)), json.loads(body))


@contextmanager
def _slot_taken() -> Iterator[None]:
    """Tell a key that exists from every other failure."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorcode not in _TAKEN:
            raise
        raise SlotTaken(str(error)) from error


def _sweep(db: sqlite3.Connection, now_ms: int) -> None:
    for statement in _SWEEP:
        db.execute(statement, (now_ms - SWEEP_GRACE_MS, SWEEP_ROWS))
