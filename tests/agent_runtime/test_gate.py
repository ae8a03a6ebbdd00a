"""The gate and its decision, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from agent_runtime.events import CheckpointMode
from agent_runtime.gate import Admission, Gate, decide_admission
from agent_runtime.tools import Tool, tool
from tests.support.virtual_loop import run_virtual


def a_tool(**options: object) -> Tool:
    @tool(**options)  # type: ignore[arg-type]
    async def body() -> None: ...

    return body


UNSAFE = a_tool()
SAFE = a_tool(replay_safety="read_only")
APPROVED = a_tool(replay_safety="read_only", approval=True)
BROWSER = a_tool(executor="client", approval=True)


@pytest.mark.parametrize(
    ("chosen", "hold", "suspend", "none"),
    [
        (UNSAFE, Admission.AWAIT_ACK, Admission.AWAIT_RESUME, Admission.AWAIT_ACK),
        (SAFE, Admission.AWAIT_ACK, Admission.AWAIT_RESUME, Admission.RUN),
        (APPROVED, *[Admission.AWAIT_PERSON] * 3),
        (BROWSER, *[Admission.AWAIT_CLIENT] * 3),
    ],
)
def test_what_a_new_call_waits_for(
    chosen: Tool, hold: Admission, suspend: Admission, none: Admission
) -> None:
    assert decide_admission(CheckpointMode.HOLD, chosen) is hold
    assert decide_admission(CheckpointMode.SUSPEND, chosen) is suspend
    assert decide_admission(CheckpointMode.NONE, chosen) is none


def test_acknowledgements_are_cumulative_and_may_come_first() -> None:
    async def main() -> None:
        gate = Gate(10.0)
        assert gate.acknowledge(5) == []
        assert await gate.passed("early", 5)
        waiting = [asyncio.create_task(gate.passed(f"c{index}", index)) for index in (6, 7, 8)]
        await asyncio.sleep(0)
        assert gate.acknowledge(7) == ["c6", "c7"]
        assert gate.acknowledge(3) == []
        assert gate.acknowledge(8) == ["c8"]
        assert await asyncio.gather(*waiting) == [True, True, True]

    run_virtual(main())


def test_the_hold_time_runs_from_emission_and_closes_the_gate_for_good() -> None:
    async def main() -> None:
        gate = Gate(10.0)
        first = asyncio.create_task(gate.passed("first", 1))
        await asyncio.sleep(6)
        second = asyncio.create_task(gate.passed("second", 2))
        await asyncio.sleep(5)
        assert first.done()
        assert second.done()
        assert gate.acknowledge(2) == []
        assert [await first, await second] == [False, False]
        assert not await gate.passed("third", 1)

    run_virtual(main())


def test_a_waiter_that_is_cancelled_leaves_no_timer_behind() -> None:
    async def main() -> None:
        gate = Gate(10.0)
        waiting = asyncio.create_task(gate.passed("c1", 1))
        await asyncio.sleep(1)
        waiting.cancel()
        await asyncio.wait({waiting})
        await asyncio.sleep(20)
        assert gate.acknowledge(1) == []
        assert await gate.passed("c2", 1)

    run_virtual(main())
