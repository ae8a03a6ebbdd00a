"""The journal in one SQLite file: the embedded default, shared by the edges of one machine.

Deliberately absent: replication, and file systems without locks or shared memory (NFS). The store's
clock is the machine's, given as a ``Clock``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from edge.core.log import AnyRecord
from edge.journal import sqlite_tables as tables
from edge.journal.rules import LOG_RETENTION_SECONDS, check_append, head_expiry_ms
from edge.journal.sqlite_threads import DatabaseThread, GroupWriter
from edge.ports import Clock, Head, Page, Renewal, TurnEntry


class SqliteJournal:
    """A ``Journal`` in a file. Several processes may open the same one."""

    def __init__(
        self,
        reader: DatabaseThread,
        writer: GroupWriter,
        clock: Clock,
        log_retention_seconds: float,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._log_retention_seconds = log_retention_seconds

    @classmethod
    async def open(
        cls,
        path: Path,
        clock: Clock,
        *,
        busy_timeout_seconds: float = 2.0,
        open_timeout_seconds: float = 2.0,
        log_retention_seconds: float = LOG_RETENTION_SECONDS,
    ) -> SqliteJournal:
        """Open or create the file. Another process may hold it for ``busy_timeout_seconds``.

        ``open_timeout_seconds`` is the same for the opening alone, when nobody waits for an answer yet.

        Raises:
            JournalUnavailable: with one line that says why not.
        """
        connect = partial(tables.open_database, path, busy_timeout_seconds, open_timeout_seconds)
        writer = GroupWriter(await DatabaseThread.start("journal-writer", connect))
        try:
            reader = await DatabaseThread.start("journal-reader", connect)
        except BaseException:
            await writer.close()
            raise
        return cls(reader, writer, clock, log_retention_seconds)

    async def create_session(self, session_id: str, owner: str) -> None:
        expiry = self._head_expiry_ms()
        await self._writer.run(lambda db: tables.create_session(db, session_id, owner, expiry))

    async def head(self, session_id: str) -> Head | None:
        now = self._clock.now_ms()
        return await self._reader.run(lambda db: tables.head(db, session_id, now))

    async def read(self, session_id: str, after_slot: int, limit: int) -> Page:
        now = self._clock.now_ms()
        return await self._reader.run(
            lambda db: tables.read(db, session_id, after_slot, limit, now)
        )

    async def locate(self, session_id: str, seq: int) -> int | None:
        now = self._clock.now_ms()
        return await self._reader.run(lambda db: tables.locate(db, session_id, seq, now))

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        check_append(records, turn)
        now = self._clock.now_ms()
        await self._writer.run(lambda db: tables.append(db, session_id, records, turn, now))

    async def turn(self, session_id: str, turn_id: str) -> TurnEntry | None:
        return await self._reader.run(lambda db: tables.turn(db, session_id, turn_id))

    async def renew(self, session_id: str, renewal: Renewal) -> None:
        now, expiry = self._clock.now_ms(), self._head_expiry_ms()
        await self._writer.run(lambda db: tables.renew(db, session_id, renewal, now, expiry))

    async def watch(self, session_id: str) -> None:
        now = self._clock.now_ms()
        await self._writer.run(lambda db: tables.watch(db, session_id, now))

    async def check(self) -> None:
        await self._reader.run(tables.check)

    async def close(self) -> None:
        await self._writer.close()
        await self._reader.close()

    def _head_expiry_ms(self) -> int:
        return head_expiry_ms(self._clock.now_ms(), self._log_retention_seconds)
