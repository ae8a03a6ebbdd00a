"""A process that appends to a SQLite journal until it is killed: ``appender PATH WRITER``.

It prints each slot once the journal has acknowledged it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from edge.core.errors import JournalUnavailable
from edge.journal.sqlite import SqliteJournal
from edge.ports import SlotTaken
from tests.support.journal_records import ManualClock, events


async def append_for_ever(path: Path, writer: str) -> None:
    """Append to the session's log, contending with whoever else does."""
    journal = await SqliteJournal.open(path, ManualClock())
    slot = 1
    while True:
        try:
            await journal.append("s1", [events(slot, slot, data=writer * 500, writer=writer)])
        except SlotTaken:
            page = await journal.read("s1", slot - 1, limit=1000)
            slot = page.records[-1].slot + 1
        except JournalUnavailable:  # the others held the lock: nothing was written
            continue
        else:
            sys.stdout.write(f"{slot}\n")
            sys.stdout.flush()
            slot += 1


if __name__ == "__main__":
    asyncio.run(append_for_ever(Path(sys.argv[1]), sys.argv[2]))
