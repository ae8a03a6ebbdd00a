"""What the writer wants done: the closed set of effects that a driver performs.

Knows nothing of how. An effect that needs an answer says which input carries it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edge.core.event import Event
from edge.core.log import AnyRecord


@dataclass(frozen=True, slots=True)
class Append:
    """Create the record; answer with ``Committed``, ``Met`` or ``Refused``."""

    record: AnyRecord


@dataclass(frozen=True, slots=True)
class Show:
    """Let viewers have the events."""

    events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class Begin:
    """Open the attempt's stream; answer with ``Received`` and ``StreamEnded``."""

    attempt: int
    resolutions: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Ack:
    """Open the gates of the attempt up to an index."""

    attempt: int
    index: int


@dataclass(frozen=True, slots=True)
class StopRuntime:
    """Ask the attempt to stop gracefully."""

    attempt: int


@dataclass(frozen=True, slots=True)
class DropStream:
    """Close the attempt's stream now."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Read the log after the last known slot; answer with ``Polled``."""

    after_slot: int


@dataclass(frozen=True, slots=True)
class Renew:
    """Tell takers that the owner is alive."""


@dataclass(frozen=True, slots=True)
class Close:
    """The writer's work is over. ``fenced``: show nothing more, not even an end."""

    fenced: bool = False
    released: bool = False
    """Handed over on purpose: takers need not wait."""
    settled: bool = True
    """Whether everything that was numbered is known to be in the log."""


Effect = Append | Show | Begin | Ack | StopRuntime | DropStream | Poll | Renew | Close
