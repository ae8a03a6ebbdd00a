"""What a process holds: seen from outside by its pid, and from inside by its own objects.

Knows nothing of what the process does. From inside every object of the product and of the libraries
it stands on is counted by its type, and everything else that Python keeps as blocks of its allocator:
both are exact and cost nothing while the work goes on, which tracing each allocation does not.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from pathlib import Path

COUNTED = frozenset({"agent_runtime", "asyncio", "edge", "grpc", "h11", "hypercorn", "quart"})
"""Packages whose objects are counted."""
HANDLES = frozenset({"asyncio.events.Handle", "asyncio.events.TimerHandle"})
"""Not counted: the loop keeps cancelled ones for a while, and never more than it has live ones."""
_STATUS_FIELDS = ("Threads:", "VmRSS:")


@dataclass(frozen=True, slots=True)
class Outside:
    """What the kernel says of a process."""

    descriptors: int
    threads: int
    resident_bytes: int


def outside(pid: int) -> Outside:
    """Look at a process from outside. Linux only."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    threads, kibibytes = (
        int(line.split()[1]) for field in _STATUS_FIELDS for line in lines if line.startswith(field)
    )
    return Outside(_descriptors(str(pid)), threads, kibibytes * 1024)


@dataclass(frozen=True, slots=True)
class Inside:
    """What this process holds."""

    tasks: int
    descriptors: int
    objects: Counter[str]
    """How many objects of each counted type are alive."""
    blocks: int
    """How many pieces of memory Python's allocator has given away: every small object is at least one."""

    def grown_since(self, before: Inside) -> dict[str, int]:
        """Return what there is more of than before, apart from blocks: those are never quite at rest."""
        grown = {name: count for name, count in (self.objects - before.objects).items() if count}
        grown |= {"tasks": self.tasks - before.tasks}
        grown |= {"descriptors": self.descriptors - before.descriptors}
        return {name: count for name, count in grown.items() if count > 0}


def inside() -> Inside:
    """Look at this process from inside, without its garbage and its caches, which have a bound."""
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper):
            each.cache_clear()
    gc.collect()
    blocks = sys.getallocatedblocks()  # first of all: looking at objects makes some
    kinds = (type(each) for each in gc.get_objects())
    names = (
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in kinds
        if str(kind.__module__).partition(".")[0] in COUNTED
    )
    return Inside(
        tasks=len(asyncio.all_tasks()),
        descriptors=_descriptors("self"),
        objects=Counter(name for name in names if name not in HANDLES),
        blocks=blocks,
    )


def _descriptors(pid: str) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
