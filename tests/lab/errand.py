"""What both columns are asked to do: count, and book a table on the way.

Counting, because a reader sees at once what is missing and what came twice. Knows nothing of who does it, and how it
is sent. Booking is what no tool should do twice: the booking stands at once, its confirmation takes its time.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from tests.lab.ledger import Ledger

LINE_WORDS = 10
"""How many numbers make one message: a message that is cut short is said again as a whole."""
MOST_WORDS = 1_000
MOST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Errand:
    """A prompt, understood."""

    last: int
    """The number to count to; the table is booked half way."""
    tool_seconds: float

    @classmethod
    def parse(cls, prompt: str) -> Errand:
        """Read a prompt such as ``{"last": 60, "tool_seconds": 3}``. Raises ``ValueError``."""
        match json.loads(prompt):
            case {"last": int() as last, "tool_seconds": int() | float() as seconds} if (
                0 < last <= MOST_WORDS and 0 <= seconds <= MOST_SECONDS
            ):
                return cls(last, float(seconds))
        raise ValueError("not an errand")

    def before(self) -> list[list[str]]:
        """Return the lines of numbers to say before the table is booked."""
        return _lines(1, self.last // 2)

    def after(self) -> list[list[str]]:
        """Return the lines of numbers to say after it."""
        return _lines(self.last // 2 + 1, self.last)


async def book_table(ledger: Ledger, conversation: str, seconds: float) -> str:
    """Book a table. To be cancelled while the confirmation is under way takes nothing back."""
    number = ledger.book(conversation)
    await asyncio.sleep(seconds)
    return f"booking no. {number}"


def _lines(first: int, last: int) -> list[list[str]]:
    numbers = [f"{number} " for number in range(first, last + 1)]
    return [numbers[at : at + LINE_WORDS] for at in range(0, len(numbers), LINE_WORDS)]
