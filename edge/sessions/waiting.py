"""How long a caller waits for what holds a session up: a silent journal, or other callers before it.

Knows nothing of sessions. A caller that has waited too long is told to come back, and leaves nothing behind that
would keep the next ones waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

from edge.core.errors import JournalUnavailable

T = TypeVar("T")

ANSWER_SECONDS = 5.0
"""How long a caller waits for a driver whose journal does not answer, or for its turn to be served."""


async def within_patience(answer: Awaitable[T]) -> T:
    """Wait for a driver's answer. What was asked of it stays asked.

    Raises:
        JournalUnavailable: it did not come in ``ANSWER_SECONDS``.
    """
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await answer
    except TimeoutError:
        raise JournalUnavailable("no answer from the journal") from None


@asynccontextmanager
async def alone(lock: asyncio.Lock) -> AsyncIterator[None]:
    """Hold a room's lock. Whoever queued for it without end would do its work long after its caller left.

    Raises:
        JournalUnavailable: others held it for ``ANSWER_SECONDS``.
    """
    await within_patience(lock.acquire())
    try:
        yield
    finally:
        lock.release()
