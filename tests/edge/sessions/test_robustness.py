"""What must not happen when something else goes wrong at the same time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from edge.core.cursor import Cursor
from edge.core.errors import Draining, JournalUnavailable, LogBroken, Overloaded, TooManyStreams
from edge.core.log import AnyRecord
from edge.ports import Head, Journal, Page, Renewal, TurnEntry
from edge.sessions.settings import SessionSettings
from tests.edge.sessions.test_takeover import TwoEdges, talk
from tests.support.faulty_journal import Fault, FaultyJournal
from tests.support.house import UID, Client, edge, log_events, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual


async def short(attempt: Attempt) -> None:
    await attempt.say("m1", ["Hi."], every_seconds=2.0)


async def long_tool(attempt: Attempt) -> None:
    await attempt.tool("c1", 300.0)


@pytest.mark.proves("P-HTTP-10")
def test_a_cancel_is_never_told_of_an_end_that_a_leaving_owner_could_not_commit() -> None:
    async def main() -> None:
        edges = TwoEdges(short)
        session_id = await edges.start()
        await elapse(1.0)
        lost = {"append": Fault.LOST}
        edges.wire_a.plan = lambda method, n: lost.get(method)
        await elapse(2.0)  # the end of the turn is numbered, and cannot be appended
        turn_id = edges.runtime_a.calls[0].ref.turn_id
        draining = asyncio.create_task(edges.a.drain(4.0))
        await elapse(1.5)
        with pytest.raises(JournalUnavailable):
            await edges.a.cancel(UID, session_id, turn_id)
        await draining
        assert (await log_events(edges.journal, session_id))[-1].type != "done"
        await edges.a.close()
        await edges.close()

    run_virtual(main())


class Locked(FaultyJournal):
    """Whose file another process holds: every write waits, and fails."""

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        await elapse(2.0)
        raise JournalUnavailable


@pytest.mark.proves("P-HTTP-15")
def test_streams_do_not_queue_behind_commands_whose_callers_have_left() -> None:
    async def main() -> None:
        registry = edge(Locked(memory_journal()), RuntimeDouble(short))
        session_id = await registry.create_session(UID)
        calls = [registry.start_turn(UID, session_id, request(key=str(n) * 16)) for n in range(8)]
        asked = [asyncio.create_task(call) for call in calls]
        await elapse(0.1)  # one of them is at work, the others queue
        async with asyncio.timeout(25.0):
            assert await registry.attach(UID, session_id, None, "turn_end") is None
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(answer, JournalUnavailable) for answer in answers)
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("S79", "P-HTTP-15")
@pytest.mark.parametrize("asked", ["start a turn", "watch", "snapshot", "new session"])
def test_a_leaving_edge_owes_nobody_an_answer(asked: str) -> None:
    """Hypercorn would make up a bare 500, which ends an EventSource for good."""

    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, RuntimeDouble(short))
        session_id = await registry.create_session(UID)
        journal.cut()
        ways: dict[str, Coroutine[Any, Any, object]] = {
            "start a turn": registry.start_turn(UID, session_id, request()),
            "watch": registry.attach(UID, session_id, None, "turn_end"),
            "snapshot": registry.snapshot(UID, session_id),
            "new session": registry.create_session(UID),
        }
        waiting = asyncio.create_task(ways.pop(asked))
        for other in ways.values():
            other.close()
        await elapse(0.1)
        await registry.drain(5.0)
        with pytest.raises(Draining):
            await asyncio.wait_for(waiting, 0.1)
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-HTTP-15")
def test_a_cancel_at_an_owner_whose_journal_is_away_is_not_left_without_an_answer() -> None:
    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, RuntimeDouble(long_tool))
        session_id = await registry.create_session(UID)
        turn_id = (await registry.start_turn(UID, session_id, request())).turn_id
        await elapse(1.0)
        journal.lose()
        async with asyncio.timeout(10.0):
            with pytest.raises(JournalUnavailable):
                await registry.cancel(UID, session_id, turn_id)
        journal.heal()
        client = Client()
        await client.watch_to_end(registry, session_id=session_id)
        assert '"outcome":"cancelled"' in client.view[-1].data  # what was asked stays asked
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-HTTP-15")
def test_nobody_waits_long_for_an_answer_that_the_journal_has_to_give() -> None:
    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, RuntimeDouble(short))
        session_id = await registry.create_session(UID)
        slow = True
        append_now = journal.append

        async def slow_append(*args: Any) -> None:
            if slow:
                await elapse(4.0)
                raise JournalUnavailable
            await append_now(*args)

        journal.append = slow_append  # type: ignore[method-assign,assignment]
        for _ in range(2):  # the second one also waits behind the first
            async with asyncio.timeout(10.0):
                with pytest.raises(JournalUnavailable):
                    await registry.start_turn(UID, session_id, request())
        slow = False
        await registry.start_turn(UID, session_id, request())
        client = Client()
        await client.watch_to_end(registry, session_id=session_id)
        assert client.types.count("turn_start") == 1
        await registry.close()

    run_virtual(main())


def test_a_follower_that_reads_what_it_cannot_understand_ends_its_streams() -> None:
    async def main() -> None:
        edges = TwoEdges(long_tool)
        session_id = await edges.start()
        viewer = await edges.b.attach(UID, session_id, None, "turn_end")
        assert viewer is not None
        await viewer.next()

        async def unreadable(session_id: str, after_slot: int, limit: int) -> Page:
            raise LogBroken("a record of a newer kind")

        edges.journal.read = unreadable  # type: ignore[method-assign]
        async with asyncio.timeout(30.0):
            while await viewer.next() is not None:
                pass
        viewer.close()
        await edges.a.close()
        await edges.close()

    run_virtual(main())


def test_a_leaving_owner_waits_until_its_release_is_written() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        renew_now = edges.journal.renew

        async def slow_renew(session_id: str, renewal: Renewal) -> None:
            await elapse(0.3)
            await renew_now(session_id, renewal)

        edges.journal.renew = slow_renew  # type: ignore[method-assign]
        await elapse(1.0)
        await edges.a.drain(5.0)
        await edges.a.close()
        head = await edges.journal.head(session_id)
        assert head is not None
        assert head.renewed_seconds_ago == float("inf")
        await edges.close()

    run_virtual(main())


def test_streams_that_wait_for_the_journal_count_towards_the_limits() -> None:
    async def main(settings: SessionSettings, refusal: type[Exception]) -> None:
        registry = edge(memory_journal(), RuntimeDouble(talk), settings)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        read_now = registry._services.journal.read

        async def slow_read(session_id: str, after_slot: int, limit: int) -> Page:
            await elapse(1.0)
            return await read_now(session_id, after_slot, limit)

        registry._services.journal.read = slow_read  # type: ignore[method-assign]
        calls = [registry.attach(UID, session_id, None, "turn_end") for _ in range(50)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(answer, refusal) for answer in answers) == 45
        await registry.close()

    run_virtual(main(SessionSettings(max_streams=5), Overloaded))
    run_virtual(main(SessionSettings(max_streams_per_session=5), TooManyStreams))


@pytest.mark.proves("P-HTTP-12")
def test_a_turn_that_is_to_end_with_its_viewers_ends_even_if_none_ever_came() -> None:
    async def main() -> None:
        journal = memory_journal()
        registry = edge(journal, RuntimeDouble(long_tool))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request(on_disconnect="cancel"))
        await elapse(30.0)
        assert (await log_events(journal, session_id))[-1].type == "done"
        await registry.close()

    run_virtual(main())


def test_rooms_that_nobody_streams_from_do_not_stay_for_ever() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(short))
        for _ in range(20):
            session_id = await registry.create_session(UID)
            await registry.start_turn(UID, session_id, request())
        await elapse(120.0)
        assert registry._rooms == {}
        await registry.close()

    run_virtual(main())


def test_a_defect_in_a_driver_hands_its_turn_on_instead_of_hanging_it() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        await elapse(0.5)
        room = edges.a._rooms[session_id]
        assert room.driver is not None

        def broken(*_: object) -> None:
            raise ValueError("a defect")

        room.driver.writer.receive = broken  # type: ignore[method-assign,assignment]
        await elapse(2.0)
        assert room.driver is None
        client = Client()
        await client.watch_to_end(edges.b, session_id=session_id)
        assert client.view == await log_events(edges.journal, session_id)
        await edges.a.close()
        await edges.close()

    run_virtual(main())


def test_readers_who_give_up_on_an_owner_without_a_journal_leave_nothing_that_asks_on() -> None:
    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, RuntimeDouble(long_tool))
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        await elapse(1.0)
        journal.lose()
        await elapse(10.0)
        before = len(asyncio.all_tasks())
        for _ in range(20):  # an epoch that this owner does not know: it has to read on first
            with pytest.raises(JournalUnavailable):
                await registry.attach(UID, session_id, Cursor(2, 50), "turn_end")
        assert len(asyncio.all_tasks()) <= before + 1
        journal.heal()
        await registry.close()

    run_virtual(main())


class HeldUp(FaultyJournal):
    """A journal whose appends can be held up, and applied later."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        self.asked.set()
        await self.go_on.wait()
        await super().append(session_id, records, turn)


@pytest.mark.proves("S79", "P-RUN-11")
def test_a_turn_that_begins_behind_a_drain_is_left_to_the_next_edge() -> None:
    async def main() -> None:
        store = memory_journal()
        wire = FaultyJournal(store)
        runtime = RuntimeDouble(long_tool)
        leaving = edge(wire, runtime)
        session_id = await leaving.create_session(UID)
        slow = asyncio.Event()

        async def head(session_id: str) -> Head | None:
            await slow.wait()
            return await store.head(session_id)

        wire.head = head  # type: ignore[method-assign]
        starting = asyncio.create_task(leaving.start_turn(UID, session_id, request()))
        await elapse(0.1)
        draining = asyncio.create_task(leaving.drain(6.0))
        await elapse(0.5)  # there was no room that it could have emptied
        slow.set()
        assert not (await starting).replayed
        await draining
        assert runtime.calls == []
        left = await store.head(session_id)
        assert left is not None and left.renewed_seconds_ago == math.inf  # free at once
        await leaving.close()

    run_virtual(main())


@pytest.mark.proves("S79", "P-RUN-11")
def test_a_take_over_that_succeeds_while_its_process_drains_is_handed_on_at_once() -> None:
    async def main() -> None:
        store = memory_journal()
        dying, leaving = FaultyJournal(store), HeldUp(store)
        runtimes = [RuntimeDouble(long_tool) for _ in range(2)]
        owner, taker = (
            edge(journal, runtime, seed=seed)
            for seed, (journal, runtime) in enumerate(zip((dying, leaving), runtimes, strict=True))
        )
        session_id = await owner.create_session(UID)
        await owner.start_turn(UID, session_id, request())
        watching = asyncio.create_task(Client().watch(taker, session_id))
        await elapse(1.0)
        dying.cut()
        leaving.go_on.clear()
        await leaving.asked.wait()  # it sees a dead owner, and takes over
        draining = asyncio.create_task(taker.drain(6.0))
        await elapse(1.0)
        leaving.go_on.set()
        await draining
        await elapse(1.0)
        assert runtimes[1].calls == []
        head = await store.head(session_id)
        assert head is not None and head.renewed_seconds_ago == math.inf  # free at once
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await taker.close()

    run_virtual(main())
