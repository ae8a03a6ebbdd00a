"""Defects that were understood on the way to a simulation, told as short stories in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from edge.core.errors import JournalUnavailable
from tests.support.faulty_journal import FaultyJournal
from tests.support.house import UID, edge, log_events, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual


async def endless(attempt: Attempt) -> None:
    for n in range(10_000):
        attempt.text("m1", f"w{n} ")
        await elapse(0.05)


@pytest.mark.proves("P-HTTP-10", "P-HTTP-15")
def test_an_edge_that_drains_without_its_journal_does_not_call_a_running_turn_done() -> None:
    async def main() -> None:
        store = memory_journal()
        wire = FaultyJournal(store)
        registry = edge(wire, RuntimeDouble(endless))
        session_id = await registry.create_session(UID)
        turn_id = (await registry.start_turn(UID, session_id, request())).turn_id
        await elapse(1.0)
        wire.lose()
        stopping = asyncio.create_task(registry.cancel(UID, session_id, turn_id))
        await elapse(0.5)
        await registry.drain(3.0)
        with pytest.raises(JournalUnavailable):
            await asyncio.wait_for(stopping, 30.0)
        assert (await log_events(store, session_id))[-1].type == "token"
        await registry.close()

    run_virtual(main())
