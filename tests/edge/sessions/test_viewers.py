"""Viewers: each has its own position; slow, stalled and late ones cost a bounded amount and lose nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from edge.core.control import Reconnect, Reset, Status
from edge.core.cursor import Cursor
from edge.core.errors import Overloaded, TooManyStreams
from edge.core.patience import WriterSettings
from edge.ports import Page
from edge.sessions.settings import SessionSettings
from edge.sessions.tail import Shown
from tests.support.faulty_journal import Fault, FaultyJournal
from tests.support.house import UID, Client, edge, log_events, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

SMALL = SessionSettings(tail_limit_bytes=2_000, batch_limit_bytes=500, page_records=2)


async def long_talk(attempt: Attempt) -> None:
    await attempt.say("m1", [f"w{n} " for n in range(200)])


async def finished_session(registry: object, session_id: str) -> Client:
    """Let the turn run to its end, and return a client that saw all of it."""
    client = Client()
    await client.watch_to_end(registry, session_id=session_id)  # type: ignore[arg-type]
    return client


@pytest.mark.proves("S02", "S03", "T33", "S62", "P-SSE-6")
def test_viewers_that_come_at_different_times_all_see_everything() -> None:
    async def main() -> None:
        journal = memory_journal()
        registry = edge(journal, RuntimeDouble(long_talk))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        clients = [Client() for _ in range(5)]

        async def come_late(client: Client, seconds: float) -> None:
            await elapse(seconds)
            await client.watch(registry, session_id)

        await asyncio.gather(*(come_late(c, 2.0 * n) for n, c in enumerate(clients)))
        whole = await log_events(journal, session_id)
        assert all(client.view == whole for client in clients)
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("S29", "T06")
def test_what_the_tail_no_longer_holds_is_read_from_the_journal_in_pages() -> None:
    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, RuntimeDouble(long_talk), SMALL)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        await finished_session(registry, session_id)
        before = journal.calls["read"]
        viewer = await registry.attach(UID, session_id, None, "turn_end")
        assert viewer is not None
        client = Client()
        while (items := await viewer.next()) is not None:
            sizes = [len(item.frame) for item in items if isinstance(item, Shown)]
            assert sum(sizes[:-1]) < SMALL.batch_limit_bytes
            for item in items:
                client.take(item)
        assert client.view == await log_events(journal, session_id)
        assert journal.calls["read"] - before > 3
        viewer.close()
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("S65", "P-SSE-17", "S77")
def test_a_viewer_that_never_reads_holds_up_neither_the_turn_nor_anybody_else() -> None:
    async def main() -> None:
        journal = memory_journal()
        registry = edge(journal, RuntimeDouble(long_talk), SMALL)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        stalled = await registry.attach(UID, session_id, None, "turn_end")
        assert stalled is not None
        aborted = asyncio.Event()
        stalled.on_stall = aborted.set
        await stalled.next()  # its write never completes
        other = await finished_session(registry, session_id)
        assert other.view == await log_events(journal, session_id)
        await asyncio.wait_for(aborted.wait(), 60)
        stalled.close()
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("S69", "P-SSE-15", "S15")
def test_a_stream_that_has_lived_long_enough_is_ended_resumably() -> None:
    async def main() -> None:
        async def very_long(attempt: Attempt) -> None:
            await attempt.tool("c1", 1_000.0)

        registry = edge(memory_journal(), RuntimeDouble(very_long))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        client = Client()
        started_at = asyncio.get_running_loop().time()
        await client.watch(registry, session_id)
        lived = asyncio.get_running_loop().time() - started_at
        assert 480 <= lived <= 721
        assert isinstance(client.told[-1], Reconnect)
        assert not client.finished
        await client.watch_to_end(registry, session_id=session_id)
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("S11", "T35", "P-LOG-14")
def test_a_cursor_that_retention_has_overtaken_gets_a_reset_that_names_the_first_seq_kept() -> None:
    async def main() -> None:
        settings = SessionSettings(
            writer=WriterSettings(retention_ms=30_000), idle_room_seconds=5.0
        )

        async def slow_talk(attempt: Attempt) -> None:
            await attempt.say("m1", [f"w{n} " for n in range(60)], every_seconds=1.0)

        registry = edge(memory_journal(), RuntimeDouble(slow_talk), settings)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        await elapse(50.0)
        client = Client(Cursor(1, 2))
        reader = edge(registry._services.journal, RuntimeDouble(slow_talk), settings, seed=2)
        await client.watch(reader, session_id, stop_after=1)
        reset = client.told[0]
        assert isinstance(reset, Reset)
        assert reset.reason == "expired"
        assert reset.first_seq > 2
        assert client.view[0].seq == reset.first_seq
        await reader.close()
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-SSE-14")
def test_viewers_are_told_when_nothing_can_be_made_durable_and_when_it_can_again() -> None:
    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, RuntimeDouble(long_talk))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        client = Client()
        await client.watch(registry, session_id, stop_after=10)
        journal.lose()
        asyncio.get_running_loop().call_later(5.0, journal.heal)
        await client.watch(registry, session_id)
        states = [told.state for told in client.told if isinstance(told, Status)]
        assert states == ["degraded", "ok"]
        assert client.view == await log_events(journal, session_id)
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-LOG-12")
def test_an_owner_cut_off_from_the_journal_falls_silent_before_its_lease_can_be_taken() -> None:
    async def main() -> None:
        journal = FaultyJournal(memory_journal())

        async def endless(attempt: Attempt) -> None:
            await attempt.say("m1", [f"w{n} " for n in range(2_000)])

        registry = edge(journal, RuntimeDouble(endless))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        client, loop = Client(), asyncio.get_running_loop()
        await client.watch(registry, session_id, stop_after=10)
        journal.lose()
        cut_at = loop.time()
        viewer = await registry.attach(UID, session_id, client.cursor, "turn_end")
        assert viewer is not None
        newest = 0.0
        while loop.time() < cut_at + 40:
            items = await viewer.next()
            if any(isinstance(item, Shown) for item in items or []):
                newest = loop.time() - cut_at
        assert 10.0 < newest <= 12.1
        viewer.close()
        await registry.close()

    run_virtual(main())


def test_a_viewer_whose_page_cannot_be_read_is_asked_to_come_back() -> None:
    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, RuntimeDouble(long_talk), SMALL)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        whole = await finished_session(registry, session_id)
        journal.plan = lambda method, n: Fault.LOST if method == "locate" else None
        client = Client()
        await client.watch(registry, session_id)
        assert isinstance(client.told[-1], Reconnect)
        journal.heal()
        await client.watch_to_end(registry, session_id=session_id)
        assert client.view == whole.view
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-SSE-19")
def test_one_viewer_too_many_is_refused_per_session_and_per_process() -> None:
    async def main() -> None:
        settings = replace(SessionSettings(), max_streams=3, max_streams_per_session=2)
        registry = edge(memory_journal(), RuntimeDouble(long_talk), settings)
        one, two = [await registry.create_session(UID) for _ in range(2)]
        for session_id in (one, two):
            await registry.start_turn(UID, session_id, request())
        for _ in range(2):
            assert await registry.attach(UID, one, None, "turn_end")
        with pytest.raises(TooManyStreams):
            await registry.attach(UID, one, None, "turn_end")
        assert await registry.attach(UID, two, None, "turn_end")
        with pytest.raises(Overloaded):
            await registry.attach(UID, two, None, "turn_end")
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-SSE-7")
def test_a_following_stream_outlives_the_turn_and_shows_the_next_one() -> None:
    async def main() -> None:
        journal = memory_journal()
        registry = edge(journal, RuntimeDouble(long_talk))
        session_id = await registry.create_session(UID)
        client = Client()
        following = asyncio.create_task(client.watch(registry, session_id, until="follow"))
        for key in ("a" * 16, "b" * 16):
            await registry.start_turn(UID, session_id, request(key=key))
            await elapse(20.0)
        assert client.types.count("done") == 2
        assert client.view == await log_events(journal, session_id)
        following.cancel()
        await registry.close()

    run_virtual(main())


def test_a_client_that_leaves_while_its_stream_is_being_opened_leaves_no_viewer_behind() -> None:
    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, RuntimeDouble(long_talk))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        await finished_session(registry, session_id)
        reading = asyncio.Event()
        read_now = journal.inner.read

        async def slow_read(session_id: str, after_slot: int, limit: int) -> Page:
            reading.set()
            await elapse(2.0)
            return await read_now(session_id, after_slot, limit)

        journal.inner.read = slow_read  # type: ignore[method-assign]
        opening = asyncio.create_task(registry.attach(UID, session_id, None, "follow"))
        await reading.wait()
        opening.cancel()
        await elapse(5.0)
        assert registry.streams == 0
        await registry.close()

    run_virtual(main())
