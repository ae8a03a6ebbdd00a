"""Every awaited journal call of a two-tool turn fails in turn, in every way a call can fail."""

from __future__ import annotations

from collections import Counter

import pytest

from edge.core.log import LogView
from tests.support.faulty_journal import Fault, FaultyJournal
from tests.support.house import UID, Client, edge, log_events, memory_journal, records, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

METHODS = ("append", "read", "renew")


async def two_tools(attempt: Attempt) -> None:
    await attempt.say("m1", ["Let ", "me ", "look."], every_seconds=0.3)
    await attempt.tool("c1", 2.0)
    await attempt.tool("c2", 2.0)
    await attempt.say("m2", ["All ", "done."], every_seconds=0.3)


async def run_with(method: str, nth: int, fault: Fault) -> bool:
    """Run one turn in which the nth call of the method fails; return whether it was ever made."""
    store = memory_journal()
    journal = FaultyJournal(store)
    runtime = RuntimeDouble(two_tools)
    registry, other = edge(journal, runtime, seed=1), edge(store, runtime, seed=2)
    session_id = await registry.create_session(UID)
    await registry.start_turn(UID, session_id, request())
    made = journal.calls[method]
    journal.plan = lambda name, n: fault if (name, n) == (method, made + nth) else None
    client = Client()
    await client.watch_to_end(registry, session_id=session_id)
    reached = journal.calls[method] >= made + nth
    await elapse(60.0)  # whatever was late has landed
    await check(store, session_id, client, runtime)
    late = Client()
    await late.watch_to_end(other, session_id=session_id)
    assert late.view == client.view
    await registry.close()
    await other.close()
    return reached


async def check(store: object, session_id: str, client: Client, runtime: RuntimeDouble) -> None:
    """The log is well formed, the client saw exactly it, and no tool ran twice."""
    view = LogView()
    for record in await records(store, session_id):  # type: ignore[arg-type]
        view.apply(record)
    assert client.view == await log_events(store, session_id)  # type: ignore[arg-type]
    assert max(Counter(runtime.ledger).values()) == 1
    assert sorted(runtime.ledger) == ["c1", "c2"]


@pytest.mark.proves("P-LOG-2", "P-LOG-3")
@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNANSWERED, Fault.LATE])
@pytest.mark.parametrize("method", METHODS)
def test_a_turn_survives_any_one_failed_journal_call(method: str, fault: Fault) -> None:
    nth = 1
    while run_virtual(run_with(method, nth, fault)):
        nth += 1
        assert nth < 100
    assert nth > 1, "the call was never made: this proves nothing"


def test_a_turn_survives_a_journal_that_fails_every_other_call() -> None:
    async def main(fault: Fault) -> None:
        store = memory_journal()
        journal = FaultyJournal(store)
        runtime = RuntimeDouble(two_tools)
        registry = edge(journal, runtime)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        journal.plan = lambda name, n: fault if n % 2 else None
        client = Client()
        await client.watch_to_end(registry, session_id=session_id)
        journal.heal()
        await elapse(60.0)
        await check(store, session_id, client, runtime)
        await registry.close()

    for fault in (Fault.LOST, Fault.UNANSWERED):
        run_virtual(main(fault))
