"""Records for tests of the journal, with every field that a test does not care about filled in."""

from __future__ import annotations

from dataclasses import dataclass

from edge.core.event import Event
from edge.core.log import Acquire, Cancel, Events, Resolve

LONG_AGO_MS = 1_000_000_000_000
"""An ``expire_at_ms`` that every clock has passed: the year 2001."""

LIVE_MS = 4_102_444_800_000
"""An ``expire_at_ms`` that no clock has reached: the year 2100."""

EDGE_A = "3f0c6a3e-edge-a"
EDGE_B = "9d41b7aa-edge-b"


@dataclass(slots=True)
class ManualClock:
    """A clock that stands still until a test moves it, far ahead of any store's own clock."""

    ms: int = 4_000_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def advance(self, *, hours: float = 0, seconds: float = 0) -> None:
        self.ms += int((hours * 3600 + seconds) * 1000)


def acquire(
    slot: int,
    *,
    epoch: int = 1,
    last_seq: int = 0,
    writer: str = EDGE_A,
    expire_at_ms: int = LIVE_MS,
) -> Acquire:
    """An acquisition whose epoch starts after ``last_seq``."""
    return Acquire(
        slot=slot,
        epoch=epoch,
        writer=writer,
        last_seq=last_seq,
        expire_at_ms=expire_at_ms,
        epoch_starts=((epoch, last_seq + 1),),
    )


def events(
    slot: int,
    first_seq: int,
    count: int = 1,
    *,
    data: str = '{"text":"hello"}',
    writer: str = EDGE_A,
    expire_at_ms: int = LIVE_MS,
) -> Events:
    """A run of ``count`` tokens of epoch 1."""
    run = tuple(Event(1, first_seq + i, "token", data, "m1", False) for i in range(count))
    return Events(
        slot=slot,
        epoch=1,
        writer=writer,
        last_seq=first_seq + count - 1,
        expire_at_ms=expire_at_ms,
        acquire_slot=1,
        events=run,
    )


def cancel(
    slot: int,
    *,
    turn_id: str = "t1",
    last_seq: int = 0,
    writer: str = EDGE_B,
    expire_at_ms: int = LIVE_MS,
) -> Cancel:
    """Somebody's request to stop a turn."""
    return Cancel(
        slot=slot,
        epoch=1,
        writer=writer,
        last_seq=last_seq,
        expire_at_ms=expire_at_ms,
        turn_id=turn_id,
    )


def resolve(slot: int, *, decision: str = '{"execute":true}') -> Resolve:
    """Somebody's decision on a tool call."""
    return Resolve(
        slot=slot,
        epoch=1,
        writer=EDGE_B,
        last_seq=0,
        expire_at_ms=LIVE_MS,
        turn_id="t1",
        call_id="c1",
        decision=decision,
    )
