"""The calls of one process to what is outside of it, any of which can fail on demand.

Knows nothing of what is called. A fault is decided per call by ``plan(method, n)``, n counting the calls of
that method from 1, so a test can name the very await point it wants to fail. Five seconds late is meant in
virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class Fault(Enum):
    """What happens to one call."""

    LOST = "lost"
    """It never arrives; the caller is told that it failed."""
    UNANSWERED = "unanswered"
    """It is applied, and its answer is lost: the caller is told that it failed."""
    LATE = "late"
    """It is reported failed now, and applied five seconds later."""
    SLOW = "slow"
    """It is applied, and answered, five seconds later."""
    HANG = "hang"
    """It never returns: the caller is as good as dead."""
    DIES_BEFORE = "dies before"
    """The calling process dies instead of making it."""
    DIES_AFTER = "dies after"
    """It is applied, and the calling process dies before it hears of it."""


Plan = Callable[[str, int], Fault | None]
LATE_SECONDS = 5.0


class FaultyCalls:
    """Lets calls through; without a plan it changes nothing."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan: Plan = plan or (lambda method, n: None)
        self.calls: Counter[str] = Counter()
        self.on_death: Callable[[], None] = lambda: None
        """Called when the calling process is to die, which it then must."""

    def cut(self) -> None:
        """From now on nothing goes out or comes back."""
        self.plan = lambda method, n: Fault.HANG

    def lose(self) -> None:
        """From now on every call fails before it arrives."""
        self.plan = lambda method, n: Fault.LOST

    def heal(self) -> None:
        self.plan = lambda method, n: None

    async def through(
        self,
        method: str,
        call: Callable[[], Awaitable[T]],
        failure: Exception,
        late: Callable[[], Awaitable[object]] | None = None,
    ) -> T:
        """Make a call as planned. ``late`` makes it after it was given up, if not ``call`` itself."""
        self.calls[method] += 1
        match self.plan(method, self.calls[method]):
            case Fault.LOST:
                raise failure
            case Fault.UNANSWERED:
                await _quietly(call())
                raise failure
            case Fault.LATE:
                loop = asyncio.get_running_loop()
                belated = late or call
                loop.call_later(LATE_SECONDS, lambda: loop.create_task(_quietly(belated())))
                raise failure
            case Fault.SLOW:
                await asyncio.sleep(LATE_SECONDS)
            case Fault.HANG:
                await _for_ever()
            case Fault.DIES_BEFORE:
                self.on_death()
                await _for_ever()
            case Fault.DIES_AFTER:
                await _quietly(call())
                self.on_death()
                await _for_ever()
        return await call()


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def _quietly(call: Awaitable[object]) -> None:
    with contextlib.suppress(Exception):  # nobody will hear what this call met
        await call
