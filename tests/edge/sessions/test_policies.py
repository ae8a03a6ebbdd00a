"""What a turn may be told: what a lost viewer means, who sets the pace, how much may be uncommitted."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from edge.core.control import Reconnect
from edge.core.errors import Draining
from edge.sessions.settings import SessionSettings
from tests.support.faulty_journal import Fault, FaultyJournal
from tests.support.house import UID, Client, edge, log_events, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual


async def endless(attempt: Attempt) -> None:
    for n in range(100_000):
        if attempt.cancelled.is_set():
            return
        attempt.text("m1", f"w{n} ")
        await elapse(0.05)


@pytest.mark.proves("S51", "P-HTTP-12")
def test_a_turn_told_to_end_with_its_viewers_ends_after_the_grace_period() -> None:
    async def main() -> None:
        journal = memory_journal()
        registry = edge(journal, RuntimeDouble(endless))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request(on_disconnect="cancel"))
        client = Client()
        await client.watch(registry, session_id, stop_after=10)
        await elapse(5.0)
        await client.watch(registry, session_id, stop_after=10)  # back in time
        await elapse(9.0)
        assert (await log_events(journal, session_id))[-1].type == "token"
        await elapse(6.0)
        assert (await log_events(journal, session_id))[-1].type == "done"
        await registry.close()

    run_virtual(main())


def test_a_viewer_on_another_edge_keeps_such_a_turn_alive() -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(endless)
        a, b = edge(journal, runtime, seed=1), edge(journal, runtime, seed=2)
        session_id = await a.create_session(UID)
        await a.start_turn(UID, session_id, request(on_disconnect="cancel"))
        client = Client()
        await client.watch(a, session_id, stop_after=10)
        elsewhere = asyncio.create_task(client.watch(b, session_id))
        await elapse(40.0)
        assert not client.finished
        elsewhere.cancel()
        await asyncio.gather(elsewhere, return_exceptions=True)
        await elapse(40.0)
        assert (await log_events(journal, session_id))[-1].type == "done"
        await a.close()
        await b.close()

    run_virtual(main())


@pytest.mark.proves("S50", "S52", "T04")
def test_a_turn_goes_on_without_viewers_by_default() -> None:
    async def slow(attempt: Attempt) -> None:
        await attempt.tool("c1", 120.0)

    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(slow)
        registry = edge(journal, runtime)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        client = Client()
        await client.watch(registry, session_id, stop_after=2)
        await elapse(200.0)
        await client.watch_to_end(registry, session_id=session_id)
        assert '"outcome":"succeeded"' in client.view[-2].data
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-RUN-9")
def test_a_journal_that_is_away_stops_the_reading_of_the_model_at_the_bound() -> None:
    async def flood(attempt: Attempt) -> None:
        for n in range(5_000):
            attempt.text("m1", f"w{n} ")
            await elapse(0.001)

    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        settings = replace(SessionSettings(), uncommitted_limit_events=300)
        registry = edge(journal, RuntimeDouble(flood), settings)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        journal.plan = lambda method, n: Fault.LOST if method in ("append", "read") else None
        viewer = await registry.attach(UID, session_id, None, "turn_end")
        await elapse(10.0)
        room = registry._rooms[session_id]
        assert room.driver is not None
        assert room.driver.writer.uncommitted_events <= 310
        assert viewer is not None
        viewer.close()
        journal.heal()
        client = Client()
        await client.watch_to_end(registry, session_id=session_id)
        assert client.types.count("token") == 5_000
        assert client.view == await log_events(journal, session_id)
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("T30")
def test_with_pacing_by_the_viewer_a_slow_sole_viewer_slows_the_model() -> None:
    async def flood(attempt: Attempt) -> None:
        for _ in range(400):
            attempt.text("m1", "x" * 1_000)
            await elapse(0.001)

    async def main(pacing: str) -> int:
        settings = replace(SessionSettings(), batch_limit_bytes=4_000, stall_seconds=1e9)
        registry = edge(memory_journal(), RuntimeDouble(flood), settings)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request(pacing=pacing))
        viewer = await registry.attach(UID, session_id, None, "turn_end")
        assert viewer is not None
        await viewer.next()
        await elapse(10.0)
        shown = registry._rooms[session_id].tail.last_seq
        viewer.close()
        await registry.close()
        return shown

    assert run_virtual(main("free")) > 400
    assert run_virtual(main("viewer")) < 60


@pytest.mark.proves("S79")
def test_a_room_is_kept_until_those_who_asked_for_it_have_had_it() -> None:
    """One that was forgotten in between was driven by nobody's leave: no drain ever found it."""

    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(endless))
        session_id = await registry.create_session(UID)
        await elapse(1_000.0)
        room = await registry._load(session_id)
        registry._beat()
        assert list(registry._rooms.values()) == [room]
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-SSE-16", "S79")
def test_a_draining_edge_takes_nothing_new_and_sends_its_viewers_elsewhere() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(endless))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        client = Client()
        watching = asyncio.create_task(client.watch(registry, session_id))
        await elapse(1.0)
        await registry.drain(5.0)
        await asyncio.wait_for(watching, 5.0)
        assert isinstance(client.told[-1], Reconnect)
        with pytest.raises(Draining):
            await registry.attach(UID, session_id, client.cursor, "turn_end")
        with pytest.raises(Draining):
            await registry.start_turn(UID, session_id, request(key="z" * 16))
        await registry.close()

    run_virtual(main())
