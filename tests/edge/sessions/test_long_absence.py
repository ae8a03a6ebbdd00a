"""Long silences and long absences: what is kept is there, and what has expired is told, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from edge.core.control import Reset
from edge.core.errors import SessionExpired
from edge.core.patience import WriterSettings
from edge.sessions.settings import SessionSettings
from tests.support.house import UID, Client, edge, log_events, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

KEPT_SECONDS = 30.0
FORGETFUL = SessionSettings(
    writer=WriterSettings(retention_ms=int(KEPT_SECONDS * 1000)),
    tail_limit_bytes=500,
    stall_seconds=1e9,
    idle_room_seconds=5.0,
)
HOURS = 3600.0


async def talk(attempt: Attempt) -> None:
    await attempt.say("m1", [f"w{n} " for n in range(100)])


@pytest.mark.proves("S12")
def test_a_reader_that_stalled_until_everything_expired_is_told_and_let_go() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(talk), FORGETFUL)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        viewer = await registry.attach(UID, session_id, None, "turn_end")
        assert viewer is not None
        client = Client()
        for item in await viewer.next() or []:
            client.take(item)
        await elapse(3 * KEPT_SECONDS)
        async with asyncio.timeout(60.0):
            while (items := await viewer.next()) is not None:
                for item in items:
                    client.take(item)
        assert [told.reason for told in client.told if isinstance(told, Reset)] == ["gap"]
        viewer.close()
        await elapse(3 * FORGETFUL.idle_room_seconds)
        with pytest.raises(SessionExpired):
            await registry.attach(UID, session_id, client.cursor, "turn_end")
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("S14")
def test_a_tool_that_is_silent_for_hours_costs_nothing_of_what_was_before() -> None:
    async def agent(attempt: Attempt) -> None:
        await attempt.say("m1", ["Let ", "me ", "look."])
        await attempt.tool("c1", 3 * HOURS)
        await attempt.say("m2", ["Found ", "it."])

    async def main() -> None:
        journal = memory_journal()
        runtime = RuntimeDouble(agent)
        registry = edge(journal, runtime)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        before = Client()
        await before.watch(registry, session_id, stop_after=5)
        await elapse(3 * HOURS + 60.0)
        newcomer = edge(journal, runtime, seed=2)
        for client, where in ((before, registry), (Client(), registry), (Client(), newcomer)):
            await client.watch_to_end(where, session_id=session_id)
            assert client.view == await log_events(journal, session_id)
            assert client.view[0].type == "turn_start"
            assert not [told for told in client.told if isinstance(told, Reset)]
        await registry.close()
        await newcomer.close()

    run_virtual(main(), limit_seconds=4 * HOURS)
