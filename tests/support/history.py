"""What a run left behind, as far as it can be seen from outside, and what may be wrong with it.

The journal, what every client was shown in order, the ledger of a tool that leaves a row each time it acts,
and how requests were answered. Knows nothing of how it was made, nor of how it is judged
(``tests.support.checker``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from edge.core.event import Event
from edge.core.log import AnyRecord, Events

COALESCABLE = frozenset({"token", "reasoning", "tool_progress"})
LEDGER_TOOL = "append_note"
"""The tool whose every execution is a row of the ledger. It is UNSAFE to repeat."""


class Kind(Enum):
    """What a user would call a violation: the columns of docs/reliability.md."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    FORKED = "forked"
    TOOL_TWICE = "tools run twice"
    STARTED_AFTER_STOP = "tool starts after an acknowledged stop"
    OTHER = "other"
    """Neither of these, and still not what was promised."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One promise that was broken."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.text}"


@dataclass(frozen=True, slots=True)
class Heard:
    """An event as a client was shown it."""

    epoch: int
    seq: int
    type: str
    data: str

    @property
    def id(self) -> str:
        return f"{self.epoch}-{self.seq}"


@dataclass(frozen=True, slots=True)
class Rewound:
    """The client was told to drop everything after a seq."""

    to: int


@dataclass(frozen=True, slots=True)
class Cleared:
    """The client was told to drop everything."""

    first_seq: int


Entry = Heard | Rewound | Cleared
Found = tuple[Kind, str]


@dataclass(slots=True)
class ClientLog:
    """Everything that one client was shown, over all its connections, in order."""

    name: str = "client"
    entries: list[Entry] = field(default_factory=list)
    after: int | None = None
    """The seq of the cursor that it began with; None if it joined without one."""
    settled: bool = True
    """Whether it was connected long enough at the end to be told what did not survive."""

    def heard(self) -> Iterator[Heard]:
        """Yield every event, also what was taken back later."""
        return (entry for entry in self.entries if isinstance(entry, Heard))

    def screen(self) -> list[Heard]:
        """Return what the client shows after obeying all that it was told."""
        screen: list[Heard] = []
        for entry in self.entries:
            match entry:
                case Heard():
                    screen.append(entry)
                case Rewound(to):
                    screen = [event for event in screen if event.seq <= to]
                case Cleared():
                    screen = []
        return screen

    def position(self) -> int:
        """Return the seq up to which the client was told everything."""
        seq = self.after or 0
        for entry in self.entries:
            match entry:
                case Heard():
                    seq = entry.seq
                case Rewound(to):
                    seq = to
                case Cleared(first_seq):
                    seq = first_seq - 1
        return seq


@dataclass(slots=True, kw_only=True)
class History:
    """All that is known of one session."""

    records: Sequence[AnyRecord]
    clients: Sequence[ClientLog] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    """The ledger: one row each time ``append_note`` acted, with its call's idempotency key."""
    posts: Sequence[tuple[str, str]] = ()
    """``(idempotency key, turn id)`` of every POST of a turn that was answered 202."""
    cancels: Sequence[str] = ()
    """Turn ids whose cancel was answered 202."""
    late_cancels: Sequence[tuple[str, int]] = ()
    """``(turn id, last slot)`` of every cancel that was answered with ``done``, that the turn had ended, and where
    the log ended when that answer had come."""
    over: bool = False
    """Whether everything was waited for: every answered turn to its end, or until it waited for somebody outside,
    and every settled client until it showed that."""

    def events(self) -> list[Event]:
        return [event for _, event in self.placed()]

    def placed(self) -> list[tuple[int, Event]]:
        """Return every event with its slot."""
        return [
            (r.slot, event) for r in self.records if isinstance(r, Events) for event in r.events
        ]

    def whole(self) -> bool:
        """Whether the log is here from its beginning: retention took nothing of it."""
        return bool(self.records) and self.records[0].slot == 1


def turn_of(event: Event) -> str:
    """Return the id of the turn that an event belongs to."""
    return str(json.loads(event.data)["turn_id"])


def key_of(event: Event) -> str:
    """Return the idempotency key of a ``tool_start``."""
    return str(json.loads(event.private)["idempotency_key"])
