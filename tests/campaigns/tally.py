"""What a campaign found: how often a fault was staged, and what the history checker said of it.

Knows nothing of how a fault is staged, and nothing of tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.checker import violations
from tests.support.history import History, Kind, Violation

TOLD_MAX = 20
"""Violations whose text is kept; all of them are counted."""


@dataclass(slots=True)
class Tally:
    """One row: a fault, staged ``count`` times, and what it did to ``histories`` sessions."""

    layer: str
    fault: str
    count: int = 0
    histories: int = 0
    found: Counter[Kind] = field(default_factory=Counter)
    takeover_seconds: list[float] = field(default_factory=list)
    """From the death of an owner to the first event that its successor showed to a client."""
    gap_seconds: list[float] = field(default_factory=list)
    """The longest silence of a stream of steady text round a fault, one for each client."""
    told: list[str] = field(default_factory=list)
    """The first violations, in words."""

    @property
    def clean(self) -> bool:
        """Whether the fault was staged, was judged, and broke no promise."""
        return bool(self.count and self.histories) and not self.found

    def judge(self, history: History) -> None:
        """Count one history and what it violates."""
        self.histories += 1
        self.accuse(violations(history))

    def accuse(self, found: Iterable[Violation]) -> None:
        """Count violations that were found."""
        for violation in found:
            self.found[violation.kind] += 1
            if len(self.told) < TOLD_MAX:
                self.told.append(str(violation))

    def add(self, other: Tally) -> None:
        """Take in another part of the same row."""
        self.count += other.count
        self.histories += other.histories
        self.found += other.found
        self.takeover_seconds += other.takeover_seconds
        self.gap_seconds += other.gap_seconds
        self.told = (self.told + other.told)[:TOLD_MAX]

    def as_json(self) -> dict[str, Any]:
        """Return what ``from_json`` reads."""
        return {
            "layer": self.layer,
            "fault": self.fault,
            "count": self.count,
            "histories": self.histories,
            "found": {kind.value: number for kind, number in self.found.items()},
            "takeover_seconds": [round(seconds, 3) for seconds in self.takeover_seconds],
            "gap_seconds": [round(seconds, 3) for seconds in self.gap_seconds],
            "told": self.told,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Tally:
        """Raises ``KeyError`` or ``ValueError`` for what ``as_json`` did not make."""
        members = dict(value)
        found = Counter({Kind(kind): number for kind, number in members.pop("found").items()})
        return cls(**members, found=found)


def total(tallies: Iterable[Tally]) -> list[Tally]:
    """Return one tally for each layer and fault, in the order of their first appearance."""
    rows: dict[tuple[str, str], Tally] = {}
    for tally in tallies:
        rows.setdefault((tally.layer, tally.fault), Tally(tally.layer, tally.fault)).add(tally)
    return list(rows.values())
