"""What can be wrong with a link, as values, and how much of a piece such a link carries when.

The names are Toxiproxy's, but for ``Vanish``. Knows nothing of sockets and loops: a proxy asks, waits and
carries. Nothing is decided for longer than one slice, so a toxic may be changed at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

SLICE_SECONDS = 0.05
"""How much of its bandwidth a narrow link spends on one slice."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Everything is late; what comes while a piece is held up is held up with it."""

    seconds: float
    jitter_seconds: float = 0.0
    """How far a delay may be off, to either side."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """The link is narrow."""

    bytes_per_second: int


@dataclass(frozen=True, slots=True)
class Slicer:
    """Bytes come in slices of 1 to ``most_bytes``, cut wherever that falls: in frames and characters."""

    most_bytes: int


@dataclass(frozen=True, slots=True)
class SlowClose:
    """That an end has gone is passed on late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class LimitData:
    """A connection is closed, tidily, once it has carried so many bytes more."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Timeout:
    """A black hole that takes bytes and passes none on; perhaps it ends the connection after a time."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Vanish:
    """A black hole that swallows packets: nothing is acknowledged, as when a lid is closed."""


@dataclass(frozen=True, slots=True)
class ResetPeer:
    """Every connection is reset after a time."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Down:
    """What is connected is cut, and nobody can connect."""


Toxic = (
    Latency
    | Bandwidth
    | Slicer
    | SlowClose
    | LimitData
    | Timeout
    | Vanish
    | ResetPeer
    | Down
)  # fmt: skip


class Chance(Protocol):
    """A source of chance; ``random.Random`` is one."""

    def random(self) -> float:
        """Return a number in [0, 1)."""


class Slice(NamedTuple):
    """What is carried next."""

    size_bytes: int
    wait_seconds: float


def decide_slice(
    toxic: Toxic | None, available_bytes: int, carried_bytes: int, chance: Chance
) -> Slice:
    """Decide how much of what is there is carried next, and after what wait.

    ``carried_bytes`` is what the connection has carried under this toxic.
    """
    match toxic:
        case Latency(seconds, jitter_seconds):
            off_seconds = jitter_seconds * (2 * chance.random() - 1)
            return Slice(available_bytes, max(0.0, seconds + off_seconds))
        case Bandwidth(bytes_per_second):
            size = min(available_bytes, max(1, int(bytes_per_second * SLICE_SECONDS)))
            return Slice(size, size / bytes_per_second)
        case Slicer(most_bytes):
            return Slice(min(available_bytes, 1 + int(chance.random() * most_bytes)), 0.0)
        case LimitData(size_bytes):
            return Slice(max(0, min(available_bytes, size_bytes - carried_bytes)), 0.0)
    return Slice(available_bytes, 0.0)


def is_spent(toxic: Toxic | None, carried_bytes: int) -> bool:
    """Whether a connection has carried all that it may."""
    return isinstance(toxic, LimitData) and carried_bytes >= toxic.size_bytes


def is_silent(toxic: Toxic) -> bool:
    """Whether a link carries nothing."""
    return isinstance(toxic, Timeout | Vanish)


def close_delay_seconds(toxic: Toxic | None) -> float:
    """Return how long the end of a connection is held up."""
    return toxic.seconds if isinstance(toxic, SlowClose) else 0.0
