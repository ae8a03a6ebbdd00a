"""Tests of the virtual event loop."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.virtual_loop import Deadlock, OutOfTime, run_virtual

DAY_SECONDS = 24 * 3600.0


def _now() -> float:
    return asyncio.get_running_loop().time()


def test_a_day_of_keep_alives_passes_at_once() -> None:
    async def pings() -> list[float]:
        times = []
        while _now() < DAY_SECONDS:
            await asyncio.sleep(15.0)
            times.append(_now())
        return times

    times = run_virtual(pings(), limit_seconds=2 * DAY_SECONDS)

    assert times == [15.0 * (i + 1) for i in range(5760)]


def test_the_clock_stands_still_while_a_task_can_run() -> None:
    async def busy() -> float:
        for _ in range(1000):
            await asyncio.sleep(0)
        return _now()

    assert run_virtual(busy()) == 0.0


def test_timers_fire_in_the_order_of_their_times() -> None:
    async def sleepers() -> list[int]:
        order: list[int] = []

        async def sleep(seconds: int) -> None:
            await asyncio.sleep(seconds)
            order.append(seconds)

        await asyncio.gather(*(sleep(seconds) for seconds in (30, 10, 20)))
        return order

    assert run_virtual(sleepers()) == [10, 20, 30]


def test_a_timeout_ends_a_wait_that_would_last_for_ever() -> None:
    async def wait() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60.0):
                await asyncio.Event().wait()
        return _now()

    assert run_virtual(wait()) == 60.0


def test_a_deadlock_is_raised_and_names_the_waiting_task() -> None:
    async def wait() -> None:
        task = asyncio.create_task(asyncio.Event().wait(), name="the stuck one")
        await task

    with pytest.raises(Deadlock, match=r"the stuck one in Event\.wait"):
        run_virtual(wait())


def test_a_program_that_outlives_its_limit_is_stopped() -> None:
    async def ping() -> None:
        while True:
            await asyncio.sleep(15.0)

    with pytest.raises(OutOfTime, match=r"after 3600\.0 virtual seconds"):
        run_virtual(ping())


def test_clean_up_may_still_wait_after_the_limit() -> None:
    cleaned = []

    async def careful() -> None:
        try:
            await asyncio.sleep(100.0)
        finally:
            await asyncio.sleep(5.0)
            cleaned.append(_now())

    with pytest.raises(OutOfTime):
        run_virtual(careful(), limit_seconds=10.0)

    assert cleaned == [105.0]


def test_threads_are_refused() -> None:
    with pytest.raises(RuntimeError, match="no threads in virtual time"):
        run_virtual(asyncio.to_thread(int))


def test_an_exception_leaves_as_it_is() -> None:
    async def fail() -> None:
        await asyncio.sleep(1.0)
        raise LookupError("as raised")

    with pytest.raises(LookupError, match="as raised"):
        run_virtual(fail())


def test_a_task_left_behind_is_cancelled() -> None:
    ended = []

    async def left_behind() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(left_behind())
        await asyncio.sleep(0)
        return task

    run_virtual(main())

    assert ended == [True]
