"""What really happened, by conversation: how often the tool ran, and what the naive server has said.

The lab's measuring instrument: one file for each conversation, written by any process and read by the lab. Knows
nothing of who writes. A row is one line in one write, so that rows of several processes do not mix.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONVERSATION = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""What may name a conversation: it becomes the name of a file."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one conversation."""

    bookings: int = 0
    """How often the tool ran."""
    said: dict[str, int] = field(default_factory=dict)
    """For each run of the naive server, the number of the last event that it produced."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Keeps the facts in a folder."""

    folder: Path

    def book(self, conversation: str) -> int:
        """Write down that the tool ran, and return how often it has. Raises ``ValueError``."""
        self._append(conversation, {"booking": True})
        return self.facts(conversation).bookings

    def say(self, conversation: str, run: str, number: int) -> None:
        """Write down that a run produced its event of that number. Raises ``ValueError``."""
        self._append(conversation, {"run": run, "number": number})

    def facts(self, conversation: str) -> Facts:
        """Return what is known. Raises ``ValueError`` when the name is none."""
        path = self._path(conversation)
        text = path.read_text("utf-8") if path.exists() else ""
        # Another process may be in the middle of its row: only what has its line break is whole.
        rows = [json.loads(line) for line in text.split("\n")[:-1]]
        said = {row["run"]: row["number"] for row in rows if "run" in row}
        return Facts(sum("booking" in row for row in rows), said)

    def _append(self, conversation: str, row: dict[str, Any]) -> None:
        with self._path(conversation).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def _path(self, conversation: str) -> Path:
        if CONVERSATION.fullmatch(conversation) is None:
            raise ValueError("not the name of a conversation")
        return self.folder / f"{conversation}.jsonl"
