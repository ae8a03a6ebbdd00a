"""Runs a coroutine in virtual time: where asyncio would wait, the clock jumps to the next timer.

Knows nothing of threads and sockets: both live in real time, so a test that needs them must not
come here. Work for an executor is refused, and a program that nothing can ever wake again raises
``Deadlock`` at once instead of hanging.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


class Deadlock(AssertionError):
    """Every task waits, and no timer is set that could wake one."""


class OutOfTime(AssertionError):
    """The program still had timers to wait for at the end of the virtual time it was given."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose ``time()`` starts at zero and moves only when every task waits."""

    def __init__(self, *, limit_seconds: float) -> None:
        self._now_seconds = 0.0
        self._limit_seconds = limit_seconds
        super().__init__(_JumpingSelector(self._jump))

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._now_seconds

    def run_in_executor(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Refuse: a thread takes real time, of which this loop has none."""
        raise RuntimeError("no threads in virtual time: use a real loop for this test")

    def _jump(self, wait_seconds: float | None) -> None:
        if wait_seconds is None:
            raise Deadlock(f"nothing can wake these tasks any more: {self._waiting()}")
        self._now_seconds += wait_seconds
        if self._now_seconds > self._limit_seconds:
            limit_seconds, self._limit_seconds = self._limit_seconds, float("inf")
            raise OutOfTime(f"not done after {limit_seconds} virtual seconds: {self._waiting()}")

    def _waiting(self) -> str:
        return "; ".join(sorted(_describe(task) for task in asyncio.all_tasks(self))) or "none"


class _JumpingSelector(selectors.DefaultSelector):
    """Polls the loop's own wake-up socket, and jumps where a selector would wait."""

    def __init__(self, jump: Callable[[float | None], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            self._jump(timeout)
        return ready


def run_virtual(main: Coroutine[Any, Any, T], *, limit_seconds: float = 3600.0) -> T:
    """Run a coroutine to its end in virtual time, and return its result.

    Call it from a plain test function. ``limit_seconds`` is virtual, and costs nothing.

    Raises:
        Deadlock: every task waits for something that cannot happen any more.
        OutOfTime: the limit passed; a forgotten periodic timer looks like this.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(limit_seconds=limit_seconds)) as runner:
        return runner.run(main)


def _describe(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    where = f"{frames[0].f_code.co_qualname}:{frames[0].f_lineno}" if frames else "not started"
    return f"{task.get_name()} in {where}"


async def elapse(seconds: float) -> None:
    """Let virtual time pass. On a real loop this would be a sleep, so there it refuses."""
    assert isinstance(asyncio.get_running_loop(), VirtualLoop), "only virtual time may elapse"
    await asyncio.sleep(seconds)
