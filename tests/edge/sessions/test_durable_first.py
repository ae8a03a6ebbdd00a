"""The journal hiccups: nothing structural is shown and no tool runs before it is in the store."""

from __future__ import annotations

import pytest

from edge.core.event import Event
from edge.journal.memory import MemoryJournal
from edge.sessions.registry import Registry
from edge.sessions.tail import Shown
from tests.edge.sessions.test_takeover import TwoEdges, watch_until
from tests.support.faulty_journal import Fault, FaultyJournal
from tests.support.house import UID, Client, edge, log_events, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

DURABLE_FIRST = [Fault.LOST, Fault.UNANSWERED, Fault.LATE]


async def two_tools(attempt: Attempt) -> None:
    await attempt.say("m1", ["Let ", "me ", "look."], every_seconds=0.3)
    await attempt.tool("c1", 2.0)
    await attempt.tool("c2", 2.0)
    await attempt.say("m2", ["All ", "done."], every_seconds=0.3)


class Witness:
    """Watches one turn, and holds all that is shown and done against what the store has."""

    def __init__(self, store: MemoryJournal, session_id: str) -> None:
        self.client = Client()
        self._store = store
        self._session_id = session_id

    async def stored(self) -> list[Event]:
        return await log_events(self._store, self._session_id)

    async def watch(self, registry: Registry, runtime: RuntimeDouble) -> None:
        viewer = await registry.attach(UID, self._session_id, self.client.cursor, "turn_end")
        assert viewer is not None
        while (items := await viewer.next()) is not None:
            stored = await self.stored()
            for item in items:
                self.client.take(item)
                if isinstance(item, Shown) and item.event.structural:
                    assert item.event in stored
            started = {event.subject for event in stored if event.type == "tool_start"}
            assert set(runtime.ledger) <= started
        viewer.close()


async def hiccup(nth: int, fault: Fault) -> bool:
    """Fail the nth append of a turn in a store that is otherwise well; return whether it was made."""
    store = memory_journal()
    wire, runtime = FaultyJournal(store), RuntimeDouble(two_tools)
    wire.plan = lambda method, n: fault if (method, n) == ("append", nth) else None
    registry = edge(wire, runtime)
    session_id = await registry.create_session(UID)
    await registry.start_turn(UID, session_id, request())
    witness = Witness(store, session_id)
    await witness.watch(registry, runtime)
    assert witness.client.view == await witness.stored()
    assert witness.client.types[-1] == "done"
    assert runtime.ledger == ["c1", "c2"]
    await registry.close()
    return wire.calls["append"] >= nth


@pytest.mark.proves("S09", "P-LOG-7")
@pytest.mark.parametrize("fault", DURABLE_FIRST)
def test_one_failed_append_delays_what_it_carries_and_neither_loses_nor_shows_it_early(
    fault: Fault,
) -> None:
    nth = 1
    while run_virtual(hiccup(nth, fault)):
        nth += 1
    assert nth > 6, "too few appends for this to prove anything"


@pytest.mark.proves("S35")
def test_nothing_is_done_with_a_result_that_only_a_killed_owner_had() -> None:
    async def agent(attempt: Attempt) -> None:
        await attempt.tool("c1", 1.0)
        await attempt.tool("c2", 1.0)

    async def main() -> None:
        edges = TwoEdges(agent)
        session_id = await edges.start()
        client = Client()
        await watch_until(client, edges.a, session_id, "tool_start")
        edges.wire_a.lose()  # from now on the owner keeps what it hears to itself
        await elapse(5.0)
        assert edges.ledger == ["c1"], "the next tool acted on a result that nobody can read"
        await edges.kill_a()
        await client.watch_to_end(edges.b, session_id=session_id)
        ends = {e.subject: e.data for e in client.view if e.type == "tool_end"}
        assert '"outcome":"unknown"' in ends["c1"]
        assert '"outcome":"succeeded"' in ends["c2"]
        assert edges.ledger == ["c1", "c2"]
        assert client.view == await log_events(edges.journal, session_id)
        await edges.close()

    run_virtual(main())
