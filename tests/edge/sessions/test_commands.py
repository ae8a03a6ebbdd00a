"""Starting, cancelling and deciding, from any edge: the log decides who wins."""

from __future__ import annotations

import asyncio

import pytest

from edge.core.errors import (
    IdempotencyKeyReused,
    JournalUnavailable,
    SessionNotFound,
    ToolCallNotFound,
    ToolCallSettled,
    TurnInProgress,
    TurnNotFound,
    UnknownAgent,
)
from edge.core.log import Cancel
from tests.support.faulty_journal import Fault, FaultyJournal
from tests.support.house import UID, Client, edge, log_events, memory_journal, records, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

APPROVED = '{"outcome":"succeeded","result_json":"true"}'
DENIED = '{"outcome":"not_executed","reason":"DENIED"}'


async def short(attempt: Attempt) -> None:
    await attempt.say("m1", ["Hi."])


async def endless(attempt: Attempt) -> None:
    """Talk until stopped, then settle the message as a runtime does."""
    for n in range(10_000):
        if attempt.cancelled.is_set():
            break
        attempt.text("m1", f"w{n} ")
        await elapse(0.05)
    attempt.message("m1", "cut", status="incomplete")


async def asks(attempt: Attempt) -> None:
    attempt.ask("c1")
    await attempt.say("m1", ["Thanks."])


def kinds(client: Client, kind: str) -> list[str]:
    return [event.data for event in client.view if event.type == kind]


@pytest.mark.proves("S44", "P-HTTP-5")
def test_one_key_from_two_edges_at_once_starts_one_turn() -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(short)
        edges = [edge(journal, runtime, seed=n) for n in (1, 2, 3)]
        session_id = await edges[0].create_session(UID)
        calls = [e.start_turn(UID, session_id, request()) for e in edges for _ in range(5)]
        started = await asyncio.gather(*calls)
        assert len({s.turn_id for s in started}) == 1
        assert len({s.cursor for s in started}) == 1
        assert [s.replayed for s in started].count(False) == 1
        client = Client()
        await client.watch_to_end(*edges, session_id=session_id)
        assert len(runtime.calls) == 1
        assert len(kinds(client, "turn_start")) == 1
        for registry in edges:
            await registry.close()

    run_virtual(main())


def test_a_repeat_after_the_end_finds_the_same_turn() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(short))
        session_id = await registry.create_session(UID)
        first = await registry.start_turn(UID, session_id, request())
        await Client().watch(registry, session_id)
        again = await registry.start_turn(UID, session_id, request())
        assert (again.turn_id, again.cursor, again.replayed) == (first.turn_id, first.cursor, True)
        with pytest.raises(IdempotencyKeyReused):
            await registry.start_turn(UID, session_id, request("something else"))
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-HTTP-6")
def test_another_key_is_refused_while_a_turn_runs_on_any_edge() -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(endless)
        a, b = edge(journal, runtime, seed=1), edge(journal, runtime, seed=2)
        session_id = await a.create_session(UID)
        started = await a.start_turn(UID, session_id, request())
        for registry in (a, b):
            with pytest.raises(TurnInProgress) as refused:
                await registry.start_turn(UID, session_id, request(key="z" * 16))
            assert refused.value.turn_id == started.turn_id
        await a.close()
        await b.close()

    run_virtual(main())


def test_a_second_turn_follows_the_first_and_the_runtime_is_told_what_was_said() -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(short)
        a, b = edge(journal, runtime, seed=1), edge(journal, runtime, seed=2)
        session_id = await a.create_session(UID)
        await a.start_turn(UID, session_id, request())
        client = Client()
        await client.watch(a, session_id)
        await b.start_turn(UID, session_id, request("more", key="z" * 16))
        await client.watch(b, session_id)
        assert client.view == await log_events(journal, session_id)
        assert client.types.count("done") == 2
        assert [e.type for e in runtime.calls[1].history] == ["turn_start", "message", "done"]
        assert runtime.calls[1].input[0]["text"] == "more"
        await a.close()
        await b.close()

    run_virtual(main())


@pytest.mark.proves("P-LOG-9", "S09")
@pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.LOST, Fault.LATE])
def test_a_turn_whose_first_append_had_no_answer_exists_once(fault: Fault) -> None:
    async def main() -> None:
        runtime = RuntimeDouble(short)
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, runtime)
        session_id = await registry.create_session(UID)
        journal.plan = lambda method, n: fault if (method, n) == ("append", 1) else None
        await registry.start_turn(UID, session_id, request())
        client = Client()
        await client.watch_to_end(registry, session_id=session_id)
        await elapse(60)
        assert client.view == await log_events(journal, session_id)
        assert client.types == ["turn_start", "token", "message", "done"]
        assert len(runtime.calls) == 1
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-HTTP-15")
def test_a_turn_is_not_acknowledged_while_the_journal_is_away_and_the_same_key_is_safe() -> None:
    async def main() -> None:
        journal = FaultyJournal(memory_journal())
        registry = edge(journal, RuntimeDouble(short))
        session_id = await registry.create_session(UID)
        journal.lose()
        with pytest.raises(JournalUnavailable):
            await registry.start_turn(UID, session_id, request())
        journal.heal()
        started = await registry.start_turn(UID, session_id, request())
        assert not started.replayed
        client = Client()
        await client.watch_to_end(registry, session_id=session_id)
        assert client.types.count("turn_start") == 1
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-HTTP-10", "P-LOG-8", "S49", "S55", "P-EVT-6")
@pytest.mark.parametrize("cancels_at", [1, 2])
def test_a_cancel_at_any_edge_ends_the_turn_and_keeps_what_was_shown(cancels_at: int) -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(endless)
        edges = {n: edge(journal, runtime, seed=n) for n in (1, 2)}
        session_id = await edges[1].create_session(UID)
        started = await edges[1].start_turn(UID, session_id, request())
        client = Client()
        await client.watch(edges[1], session_id, stop_after=20)
        assert await edges[cancels_at].cancel(UID, session_id, started.turn_id) == "accepted"
        assert any(isinstance(r, Cancel) for r in await records(journal, session_id))
        await client.watch_to_end(edges[1], session_id=session_id)
        assert kinds(client, "done") == [f'{{"turn_id":"{started.turn_id}","outcome":"cancelled"}}']
        assert '"status":"incomplete"' in kinds(client, "message")[0]
        assert await edges[cancels_at].cancel(UID, session_id, started.turn_id) == "done"
        for registry in edges.values():
            await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-HTTP-11", "P-RUN-8")
def test_no_tool_starts_after_a_cancel_was_acknowledged_by_another_edge() -> None:
    async def tool_after_tool(attempt: Attempt) -> None:
        for n in range(100):
            if await attempt.tool(f"c{n}", 0.01) != "succeeded":
                return
            await elapse(0.03)

    async def main(after_seconds: float) -> None:
        journal, runtime = memory_journal(), RuntimeDouble(tool_after_tool)
        a, b = edge(journal, runtime, seed=1), edge(journal, runtime, seed=2)
        session_id = await a.create_session(UID)
        started = await a.start_turn(UID, session_id, request())
        await elapse(after_seconds)
        assert await b.cancel(UID, session_id, started.turn_id) == "accepted"
        starts = [e for e in await log_events(journal, session_id) if e.type == "tool_start"]
        client = Client()
        await client.watch_to_end(a, session_id=session_id)
        assert kinds(client, "tool_start") == [event.data for event in starts]
        assert len(runtime.ledger) == len(set(runtime.ledger)) <= len(starts)
        assert len(kinds(client, "tool_end")) == len(starts)
        await a.close()
        await b.close()

    for hundredths in range(10, 60, 3):
        run_virtual(main(hundredths / 100))


def test_a_cancel_of_a_dead_owners_turn_is_carried_out_by_whoever_acknowledged_it() -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(endless)
        wire = FaultyJournal(journal)
        a, b = edge(wire, runtime, seed=1), edge(journal, runtime, seed=2)
        session_id = await a.create_session(UID)
        started = await a.start_turn(UID, session_id, request())
        await elapse(1.0)
        wire.cut()
        await a.close()
        assert await b.cancel(UID, session_id, started.turn_id) == "accepted"
        await elapse(20.0)  # TTL + 5 s, without any viewer
        assert (await log_events(journal, session_id))[-1].type == "done"
        await b.close()

    run_virtual(main())


def test_a_cancel_that_cannot_be_recorded_is_not_acknowledged() -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(endless)
        wire = FaultyJournal(journal)
        a, b = edge(journal, runtime, seed=1), edge(wire, runtime, seed=2)
        session_id = await a.create_session(UID)
        started = await a.start_turn(UID, session_id, request())
        await b.snapshot(UID, session_id)
        wire.plan = lambda method, n: Fault.LOST if method == "append" else None
        with pytest.raises(JournalUnavailable):
            await b.cancel(UID, session_id, started.turn_id)
        with pytest.raises(TurnNotFound):
            await b.cancel(UID, session_id, "nosuchturn")
        await a.close()
        await b.close()

    run_virtual(main())


@pytest.mark.proves("P-HTTP-13", "P-HTTP-14", "S47")
def test_a_question_waits_without_an_owner_and_goes_on_where_it_is_answered() -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(asks)
        a, b = edge(journal, runtime, seed=1), edge(journal, runtime, seed=2)
        session_id = await a.create_session(UID)
        turn_id = (await a.start_turn(UID, session_id, request())).turn_id
        await elapse(1800.0)
        await a.close()
        with pytest.raises(ToolCallNotFound):
            await b.resolve(UID, session_id, turn_id, "c9", APPROVED)
        await b.resolve(UID, session_id, turn_id, "c1", APPROVED)
        client = Client()
        await client.watch_to_end(b, session_id=session_id)
        assert client.types == [
            *["turn_start", "tool_start", "suspended", "turn_start", "tool_end"],
            *["token", "message", "done"],
        ]
        await b.resolve(UID, session_id, turn_id, "c1", APPROVED)  # a double click
        with pytest.raises(ToolCallSettled):
            await b.resolve(UID, session_id, turn_id, "c1", DENIED)
        await b.close()

    run_virtual(main())


def test_a_parked_turn_can_be_cancelled() -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(asks)
        registry = edge(journal, runtime)
        session_id = await registry.create_session(UID)
        turn_id = (await registry.start_turn(UID, session_id, request())).turn_id
        await elapse(5.0)
        assert await registry.cancel(UID, session_id, turn_id) == "accepted"
        client = Client()
        await client.watch_to_end(registry, session_id=session_id)
        assert '"outcome":"not_executed"' in kinds(client, "tool_end")[0]
        assert client.types[-1] == "done"
        assert len(runtime.calls) == 1
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("P-HTTP-3", "S81")
def test_another_users_session_is_as_unknown_as_one_that_does_not_exist() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(short))
        session_id = await registry.create_session(UID)
        turn_id = (await registry.start_turn(UID, session_id, request())).turn_id
        for name in (session_id, "nosuchsession"):
            with pytest.raises(SessionNotFound):
                await registry.attach("eve", name, None, "follow")
            with pytest.raises(SessionNotFound):
                await registry.snapshot("eve", name)
            with pytest.raises(SessionNotFound):
                await registry.cancel("eve", name, turn_id)
            with pytest.raises(SessionNotFound):
                await registry.start_turn("eve", name, request())
        await registry.close()

    run_virtual(main())


def test_an_agent_that_the_runtime_does_not_run_is_refused() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(short))
        session_id = await registry.create_session(UID)
        with pytest.raises(UnknownAgent):
            await registry.start_turn(UID, session_id, request(agent="nobody"))
        await registry.start_turn(UID, session_id, request(agent="agent"))
        await registry.close()

    run_virtual(main())
