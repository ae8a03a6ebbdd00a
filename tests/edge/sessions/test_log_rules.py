"""The log's rules where they show: at the seam between replay and live, and between two owners."""

from __future__ import annotations

import asyncio

import pytest

from edge.core.control import Reset, Rewind
from edge.core.cursor import Cursor
from edge.core.log import Acquire, AnyRecord, Events
from edge.core.patience import WriterSettings
from edge.ports import Page, TurnEntry
from edge.sessions.settings import SessionSettings
from tests.edge.sessions.test_takeover import TwoEdges, talk
from tests.support.faulty_journal import Fault, FaultyJournal
from tests.support.house import UID, Client, edge, log_events, memory_journal, records, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual


async def long_tool(attempt: Attempt) -> None:
    await attempt.tool("c1", 300.0)


@pytest.mark.proves("S01")
@pytest.mark.parametrize("read_seconds", [0.0, 0.03, 0.4, 3.0])
def test_what_happens_while_the_backlog_is_read_arrives_once(read_seconds: float) -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        slow = FaultyJournal(edges.journal)
        read_now = edges.journal.read

        async def slow_read(session_id: str, after_slot: int, limit: int) -> Page:
            page = await read_now(session_id, after_slot, limit)
            await elapse(read_seconds)
            return page

        slow.read = slow_read  # type: ignore[method-assign]
        c = edge(slow, edges.runtime_b, seed=3)
        clients = [Client() for _ in range(8)]

        async def come(client: Client, after_seconds: float) -> None:
            await elapse(after_seconds)
            await client.watch_to_end(c, session_id=session_id)

        await asyncio.gather(*(come(client, 0.25 * n) for n, client in enumerate(clients)))
        whole = await log_events(edges.journal, session_id)
        assert all(client.view == whole for client in clients)
        await c.close()
        await edges.a.close()
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("S12")
def test_a_reader_that_stalled_until_its_place_expired_is_told() -> None:
    async def chatty(attempt: Attempt) -> None:
        await attempt.say("m1", [f"w{n} " for n in range(200)], every_seconds=1.0)

    async def main() -> None:
        settings = SessionSettings(
            writer=WriterSettings(retention_ms=30_000), tail_limit_bytes=1_000, stall_seconds=1e9
        )
        registry = edge(memory_journal(), RuntimeDouble(chatty), settings)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        viewer = await registry.attach(UID, session_id, None, "turn_end")
        assert viewer is not None
        await viewer.next()
        await elapse(100.0)
        items = await viewer.next()
        assert items is not None
        assert isinstance(items[0], Reset)
        assert items[0].first_seq > 50
        viewer.close()
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-RES-2", "S60")
def test_an_open_stream_that_is_ahead_of_the_log_is_rewound_when_the_epoch_grows() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        edges.wire_a.lose()
        client = Client()
        await client.watch(edges.a, session_id, stop_after=9)
        ahead = client.cursor
        assert ahead is not None
        await edges.kill_a()
        assert await client.watch(edges.b, session_id)  # one connection, to the end
        assert [t for t in client.told if isinstance(t, Rewind)] == [Rewind(Cursor(1, 1))]
        assert client.view == await log_events(edges.journal, session_id)
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("P-LOG-5")
def test_a_taker_whose_acquire_is_not_confirmed_shows_and_sends_nothing() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        await elapse(1.0)
        await edges.kill_a()
        wire = FaultyJournal(
            edges.journal, lambda method, n: Fault.HANG if method == "append" else None
        )
        runtime = RuntimeDouble(talk)
        c = edge(wire, runtime, seed=3)
        client = Client()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.watch(c, session_id), 60.0)
        assert wire.calls["append"] == 1
        assert runtime.calls == []
        assert client.view == await log_events(edges.journal, session_id)
        await c.close()
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("P-LOG-1")
def test_an_acquire_confirmed_late_counts_only_if_no_higher_one_is_there() -> None:
    async def main() -> None:
        edges = TwoEdges(long_tool)
        session_id = await edges.start()
        await elapse(1.0)
        await edges.kill_a()
        wire = FaultyJournal(edges.journal)
        runtime = RuntimeDouble(long_tool)
        c = edge(wire, runtime, seed=3)
        room = await c._room(UID, session_id)
        wire.plan = lambda method, n: {"append": Fault.UNANSWERED, "read": Fault.LOST}.get(
            method if wire.calls["append"] else ""
        )
        taking = asyncio.create_task(room.take_over())
        await elapse(0.01)
        rival = await edges.b._room(UID, session_id)
        await rival.take_over()
        wire.heal()
        await taking
        await elapse(5.0)
        acquires = [r for r in await records(edges.journal, session_id) if isinstance(r, Acquire)]
        assert [record.writer for record in acquires] == ["edge-1", "edge-3", "edge-2"]
        assert runtime.calls == []
        assert len(edges.runtime_b.calls) == 1
        await c.close()
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("P-LOG-4")
def test_a_cancel_deep_in_the_log_is_obeyed_by_whoever_takes_over() -> None:
    async def main() -> None:
        edges = TwoEdges(long_tool)
        session_id = await edges.start()
        await elapse(1.0)
        turn_id = edges.runtime_a.calls[0].ref.turn_id
        await edges.kill_a()
        assert await edges.b.cancel(UID, session_id, turn_id) == "accepted"
        await edges.b.close()
        settings = SessionSettings(page_records=1)
        runtime = RuntimeDouble(long_tool)
        c = edge(edges.journal, runtime, settings, seed=3)
        client = Client()
        await client.watch_to_end(c, session_id=session_id)
        assert '"outcome":"cancelled"' in client.view[-1].data
        assert runtime.calls == []
        await c.close()

    run_virtual(main())


@pytest.mark.proves("P-LOG-6")
def test_a_cursor_of_a_higher_epoch_makes_a_stale_owner_read_on() -> None:
    async def main() -> None:
        edges = TwoEdges(long_tool)
        session_id = await edges.start()
        client = Client()
        await client.watch(edges.a, session_id, stop_after=2)
        room = await edges.b._room(UID, session_id)
        await room.take_over()
        await elapse(0.05)
        await client.watch(edges.b, session_id, stop_after=1)
        assert client.cursor is not None
        assert client.cursor.epoch == 2
        viewer = await edges.a.attach(UID, session_id, client.cursor, "turn_end")
        assert viewer is not None
        assert viewer.start == client.cursor
        assert edges.a._rooms[session_id].driver is None
        viewer.close()
        await edges.a.close()
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("P-LOG-11")
def test_a_new_turn_is_one_atomic_append() -> None:
    async def main() -> None:
        journal = memory_journal()
        appended: list[tuple[list[AnyRecord], TurnEntry | None]] = []
        append_now = journal.append

        async def append(
            session_id: str, new: list[AnyRecord], turn: TurnEntry | None = None
        ) -> None:
            appended.append((list(new), turn))
            await append_now(session_id, new, turn)

        journal.append = append  # type: ignore[method-assign,assignment]
        registry = edge(journal, RuntimeDouble(talk))
        session_id = await registry.create_session(UID)
        for key in ("a" * 16, "b" * 16):
            await registry.start_turn(UID, session_id, request(key=key))
            await elapse(20.0)
        firsts = [(new, entry) for new, entry in appended if entry is not None]
        assert [[type(r) for r in new] for new, _ in firsts] == [[Acquire, Events], [Events]]
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-LOG-1")
def test_a_turn_that_was_taken_over_before_its_start_was_confirmed_is_not_run_by_its_starter() -> (
    None
):
    async def main() -> None:
        journal = memory_journal()
        wire = FaultyJournal(journal)
        starter, rival_runtime = RuntimeDouble(long_tool), RuntimeDouble(long_tool)
        a, b = edge(wire, starter, seed=1), edge(journal, rival_runtime, seed=2)
        session_id = await a.create_session(UID)
        await a.snapshot(UID, session_id)
        wire.plan = lambda method, n: {"append": Fault.UNANSWERED, "read": Fault.LOST}.get(
            method if wire.calls["append"] else ""
        )
        starting = asyncio.create_task(a.start_turn(UID, session_id, request()))
        await elapse(0.01)
        rival = await b._room(UID, session_id)
        await rival.take_over()
        wire.heal()
        assert not (await starting).replayed
        await elapse(5.0)
        assert starter.calls == []
        assert [call.ref.attempt for call in rival_runtime.calls] == [2]
        await a.close()
        await b.close()

    run_virtual(main())
