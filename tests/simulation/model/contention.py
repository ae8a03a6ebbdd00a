"""Rule P-LOG-10 by numbers: how often a contender tries for a slot against an owner that keeps appending.

The search cannot tell rarely from never, so this is a race of seeded one-way delays. Knows nothing of records.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable

MEDIAN_SECONDS = 0.010
"""One way between a process and the store."""
RACE_SECONDS = 20.0


def tries_needed(
    chance: random.Random, *, gap_seconds: float, spread: float, tries: int
) -> int | None:
    """Return how many tries a contender needs; ``None`` if so many are not enough.

    ``gap_seconds`` is what the owner leaves between an answer and its next append, ``spread`` the deviation of
    the delays' logarithm.
    """

    def delay() -> float:
        return MEDIAN_SECONDS * math.exp(spread * chance.gauss(0.0, 1.0))

    landings = _landings(delay, gap_seconds)
    now = 1.0 + 5.0 * chance.random()
    for attempt in range(1, tries + 1):
        read_at = now + delay()
        slot = bisect_right(landings, read_at)
        lands_at = read_at + delay() + delay()
        if lands_at < landings[slot]:
            return attempt
        now = lands_at + delay() + 0.02 + 0.08 * chance.random()
    return None


def _landings(delay: Callable[[], float], gap_seconds: float) -> list[float]:
    """Return when the owner's appends reach the store."""
    now, landings = 0.0, []
    while now < RACE_SECONDS:
        now += delay()
        landings.append(now)
        now += delay() + gap_seconds
    return landings
