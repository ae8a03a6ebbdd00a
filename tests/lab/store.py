"""The journal's file, as the lab reads it, and takes it away from everybody who would write.

Knows nothing of what the records mean.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from edge.core.errors import JournalUnavailable
from edge.core.log import AnyRecord
from edge.ports import Journal

_RECORDS_MOST = 100_000
_TRY_SECONDS = 0.02
_LOCK_SECONDS = 10.0


class StoreBusy(Exception):
    """The store could not be taken away: somebody held it all the time."""


class Store:
    """A SQLite file that edges share."""

    def __init__(self, path: Path, journal: Journal, now: Callable[[], float]) -> None:
        self._path = path
        self._journal = journal
        self._now = now
        self._lock: sqlite3.Connection | None = None

    @property
    def away(self) -> bool:
        return self._lock is not None

    async def records(self, session_id: str) -> Sequence[AnyRecord]:
        """Return a session's log; nothing if it has none, or cannot be read now."""
        with suppress(JournalUnavailable):
            return (await self._journal.read(session_id, 0, _RECORDS_MOST)).records
        return ()

    async def take(self) -> None:
        """Lock the file. Raises ``StoreBusy``."""
        self._lock = sqlite3.connect(self._path, isolation_level=None, timeout=0)
        give_up_at = self._now() + _LOCK_SECONDS
        while True:
            try:
                self._lock.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:  # an edge is in the middle of a write
                if self._now() >= give_up_at:
                    self.give_back()
                    raise StoreBusy from None
                await asyncio.sleep(_TRY_SECONDS)
            else:
                return

    def give_back(self) -> None:
        """Unlock the file, if it is locked."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
