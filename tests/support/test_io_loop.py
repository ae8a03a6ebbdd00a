"""Tests of virtual time with real work in it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.support import io_loop
from tests.support.io_loop import NoAnswer, real_io, run_with_io
from tests.support.virtual_loop import Deadlock, elapse

DAY_SECONDS = 24 * 3600.0


def _now() -> float:
    return asyncio.get_running_loop().time()


def test_the_clock_stands_still_while_real_work_is_under_way() -> None:
    done = threading.Event()

    async def tick() -> None:
        await elapse(1.0)
        done.set()

    async def main() -> tuple[bool, float]:
        ticking = asyncio.create_task(tick())
        with real_io():
            # A clock that moved would let the tick pass while the thread still looks for it.
            early = await asyncio.get_running_loop().run_in_executor(None, done.wait, 0.05)
        before = _now()
        await ticking
        return early, before

    assert run_with_io(main()) == (False, 0.0)


def test_the_clock_jumps_once_the_work_is_done() -> None:
    async def main() -> float:
        with real_io():
            await asyncio.to_thread(threading.Event().is_set)
        await elapse(DAY_SECONDS)
        return _now()

    assert run_with_io(main(), limit_seconds=2 * DAY_SECONDS) == DAY_SECONDS


def test_what_nothing_can_wake_is_still_a_deadlock() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run_with_io(main())


def test_work_that_never_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_loop, "PATIENCE_SECONDS", 0.01)

    async def main() -> None:
        with real_io():
            await asyncio.Event().wait()

    with pytest.raises(NoAnswer):
        run_with_io(main())
