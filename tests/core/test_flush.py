"""When to append: structural events at once, tokens by age or size, and never back to back."""

from __future__ import annotations

import pytest

from edge.core.event import Event
from edge.core.flush import (
    RECORD_LIMIT_BYTES,
    RECORD_LIMIT_EVENTS,
    FlushPolicy,
    Unflushed,
    take_batch,
)

POLICY = FlushPolicy()
NEVER = float("-inf")

DUE: dict[str, tuple[Unflushed, float | None]] = {
    "nothing waits": (Unflushed(), None),
    "a token waits half a second": (Unflushed(10, 0, 7.0), 7.5),
    "a structural event waits for nothing": (Unflushed(10, 1, 7.0), 7.0),
    "a structural event does not wait for the pause": (Unflushed(10, 1, 7.0, 6.99), 7.0),
    "64 KiB of tokens wait for the pause alone": (Unflushed(64 * 1024, 0, 7.0, 6.95), 7.05),
    "the first 64 KiB of tokens wait for nothing": (Unflushed(64 * 1024, 0, 7.0), NEVER),
    "one byte less waits its time": (Unflushed(64 * 1024 - 1, 0, 7.0), 7.5),
    "an old token still waits for the pause": (Unflushed(10, 0, 7.0, 7.45), 7.55),
}


@pytest.mark.proves("P-LOG-7", "P-LOG-10")
@pytest.mark.parametrize("case", DUE)
def test_the_next_append_is_due(case: str) -> None:
    unflushed, due_at = DUE[case]
    assert unflushed.due_at(POLICY) == pytest.approx(due_at)


def _events(count: int, size: int) -> list[Event]:
    return [Event(1, seq, "token", "x" * size) for seq in range(1, count + 1)]


@pytest.mark.parametrize(
    ("count", "size", "taken"),
    [
        (3, 10, 3),
        (RECORD_LIMIT_EVENTS + 1, 1, RECORD_LIMIT_EVENTS),
        (5, RECORD_LIMIT_BYTES // 2, 2),
        (5, RECORD_LIMIT_BYTES // 2 + 1, 1),
        (2, RECORD_LIMIT_BYTES + 1, 1),
    ],
)
def test_a_record_takes_what_fits_and_at_least_one(count: int, size: int, taken: int) -> None:
    pending = _events(count, size)
    batch = take_batch(pending)
    assert [event.seq for event in batch] == list(range(1, taken + 1))
    assert [event.seq for event in pending] == list(range(taken + 1, count + 1))
