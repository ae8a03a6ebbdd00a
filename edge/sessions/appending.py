"""Appending to the log until the outcome is known: the one place where an unknown outcome is settled.

Knows nothing of what the records mean. An append that failed in any way is settled by reading its slot: mine,
absent (then the identical record is sent again), or somebody else's (then that one is obeyed first).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edge.core.errors import JournalUnavailable
from edge.core.log import AnyRecord
from edge.ports import AppendUnknown, Journal, SlotTaken, TurnEntry

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 1.6
FOUND_LIMIT = 50
"""How many foreign records are read at once; whoever meets them reads on after obeying them."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of an append."""

    found: Sequence[AnyRecord] = ()
    """Empty: the records are in the log. Otherwise: what stands at their slots instead."""
    late: bool = False
    """Known only afterwards: read to the tail before relying on an ``Acquire`` (P-LOG-1)."""


class TurnExists(Exception):
    """The slot is free, but the turn entry is not: another process started the same turn."""


@dataclass(frozen=True, slots=True)
class Appender:
    """Appends to one session's log."""

    journal: Journal
    session_id: str
    chance: random.Random
    on_trouble: Callable[[], None] = lambda: None
    """Called whenever the journal could not answer."""

    async def commit(
        self, records: Sequence[AnyRecord], turn: TurnEntry | None = None, tries: int | None = None
    ) -> Settled:
        """Append the records and return what became of them; ``tries=None`` never gives up.

        Raises:
            JournalUnavailable: no answer within ``tries``; the outcome stays unknown.
            TurnExists: see there.
            AppendRefused: as ``Journal.append``.
        """
        pause, late, left = FIRST_PAUSE_SECONDS, False, tries
        while True:
            try:
                if late and (found := await self._read(records)):
                    return self._judge(records, found, late=True)
                await self.journal.append(self.session_id, records, turn)
                return Settled(late=late)
            except SlotTaken:
                if found := await self._patient_read(records, left):
                    return self._judge(records, found, late=late)
                if turn is not None:
                    raise TurnExists from None
            except (AppendUnknown, JournalUnavailable):
                self.on_trouble()
                late = True
                left = self._spend(left)
            await asyncio.sleep(pause * (0.5 + self.chance.random() / 2))
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _judge(
        self, records: Sequence[AnyRecord], found: Sequence[AnyRecord], *, late: bool
    ) -> Settled:
        # Rule L2: mine only if writer, epoch and content all match.
        if list(found[: len(records)]) == list(records):
            return Settled(late=True)
        return Settled(found, late)

    async def _read(self, records: Sequence[AnyRecord]) -> Sequence[AnyRecord]:
        first = records[0].slot
        page = await self.journal.read(self.session_id, first - 1, FOUND_LIMIT)
        return page.records

    async def _patient_read(
        self, records: Sequence[AnyRecord], left: int | None
    ) -> Sequence[AnyRecord]:
        while True:
            try:
                return await self._read(records)
            except JournalUnavailable:
                self.on_trouble()
                left = self._spend(left)
                await asyncio.sleep(FIRST_PAUSE_SECONDS)

    def _spend(self, left: int | None) -> int | None:
        if left is None:
            return None
        if left <= 1:
            raise JournalUnavailable("no answer from the journal")
        return left - 1
