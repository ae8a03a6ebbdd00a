"""Virtual time that stands still while real work is under way: for real stores in a simulated world.

Knows nothing of stores. Whoever waits for a thread or for another process says so with ``real_io``; only
when nobody does, the clock jumps. So a run with a file or a database decides as one in memory does, and
waits for nothing but the work itself.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tests.support.virtual_loop import VirtualLoop

T = TypeVar("T")

PATIENCE_SECONDS = 20.0
"""Longer than any store takes on a busy machine."""


class NoAnswer(AssertionError):
    """Real work that was under way never came to an end."""


class IoLoop(VirtualLoop):
    """A virtual loop that lets real work finish before its clock moves."""

    def __init__(self, *, limit_seconds: float) -> None:
        super().__init__(limit_seconds=limit_seconds)
        self._under_way = 0

    @contextmanager
    def real_io(self) -> Iterator[None]:
        """Stop the clock meanwhile."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Take work for a thread, which here has time."""
        return asyncio.SelectorEventLoop.run_in_executor(self, executor, func, *args)

    async def shutdown_default_executor(self, *args: Any) -> None:
        """Wait for the thread that ends the others."""
        with self.real_io():
            await super().shutdown_default_executor(*args)

    def _jump(self, wait_seconds: float | None) -> None:
        if not self._under_way:
            super()._jump(wait_seconds)
        elif wait_seconds != 0:
            # What is ready now is found again by the loop's next look.
            selector: Any = self._selector  # type: ignore[attr-defined]
            if not selectors.DefaultSelector.select(selector, PATIENCE_SECONDS):
                raise NoAnswer(f"real work under way: {self._waiting()}")


def real_io() -> Any:
    """Stop the running loop's clock meanwhile, if it is one that jumps."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, IoLoop), "only where time is virtual it can be stopped"
    return loop.real_io()


def run_with_io(main: Coroutine[Any, Any, T], *, limit_seconds: float = 3600.0) -> T:
    """Run a coroutine as ``run_virtual`` does, with real work in it."""
    with asyncio.Runner(loop_factory=lambda: IoLoop(limit_seconds=limit_seconds)) as runner:
        return runner.run(main)
