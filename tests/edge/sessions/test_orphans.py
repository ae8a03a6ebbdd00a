"""Turns that nobody drives any more, and names and numbers that come back: what is honest is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from edge.core.control import Reset, Rewind
from edge.core.cursor import Cursor
from edge.core.log import Acquire, AnyRecord
from edge.journal.memory import MemoryJournal
from edge.ports import Renewal, TurnEntry
from edge.sessions.driver import Driver
from tests.edge.sessions.test_takeover import TwoEdges, talk
from tests.support.faulty_journal import FaultyJournal
from tests.support.house import UID, Client, edge, log_events, memory_journal, records, request
from tests.support.runtime_double import Attempt, RuntimeDouble, crash
from tests.support.virtual_loop import elapse, run_virtual


async def endless(attempt: Attempt) -> None:
    while not attempt.cancelled.is_set():
        attempt.text("m1", "on ")
        await elapse(0.05)
    attempt.message("m1", "cut", status="incomplete")


class Distant(FaultyJournal):
    """A journal so far away that whoever appends does not see what others are appending."""

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        await elapse(3.0)
        await super().append(session_id, records, turn)


def acquires(log: list[AnyRecord]) -> list[Acquire]:
    return [record for record in log if isinstance(record, Acquire)]


@pytest.mark.proves("S44")
def test_three_tabs_at_three_edges_take_a_dead_owners_turn_over_once() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        await elapse(1.0)
        await edges.kill_a()
        places = [edge(Distant(edges.journal), edges.runtime_b, seed=seed) for seed in (3, 4, 5)]
        tabs = [Client() for _ in places]
        await asyncio.gather(
            *(tab.watch(place, session_id) for tab, place in zip(tabs, places, strict=True))
        )
        whole = await log_events(edges.journal, session_id)
        assert [tab.view for tab in tabs] == [whole] * 3
        assert len(acquires(await records(edges.journal, session_id))) == 2
        assert [call.ref.attempt for call in edges.runtime_b.calls] == [2]
        for place in places:
            await place.close()
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("S60", "S59", "T26")
def test_a_turn_whose_owner_and_runtime_are_both_gone_ends_with_the_reason() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)

        async def nobody_home(attempt: Attempt) -> None:
            raise crash("runtime_unavailable")

        edges.runtime_b.agent = nobody_home
        session_id = await edges.start()
        await elapse(1.0)
        await edges.kill_a()
        client = Client()
        await client.watch_to_end(edges.b, session_id=session_id)
        assert client.types[-1] == "error"
        assert '"code":"runtime_unavailable","retryable":true' in client.view[-1].data
        assert not await client.watch(edges.b, session_id), "a reconnect finds nothing to wait for"
        page = await edges.b.snapshot(UID, session_id)
        assert page["turns"][0]["state"] == "finished"
        attempts = len(edges.runtime_b.calls)
        await elapse(600.0)
        assert len(edges.runtime_b.calls) == attempts, "a failed turn is not run again by itself"
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("S42", "P-LOG-2", "P-LOG-15")
def test_a_zombie_with_its_replacements_name_is_refused_appends_heartbeats_and_release() -> None:
    async def main() -> None:
        journal = memory_journal()
        wire = FaultyJournal(journal)
        zombie_runtime, runtime = RuntimeDouble(talk), RuntimeDouble(endless)
        zombie, namesake = edge(wire, zombie_runtime, seed=1), edge(journal, runtime, seed=1)
        session_id = await zombie.create_session(UID)
        await zombie.start_turn(UID, session_id, request())
        await elapse(1.0)
        driver = zombie._rooms[session_id].driver
        assert driver is not None
        wire.lose()
        watching = asyncio.create_task(Client().watch(namesake, session_id))
        await elapse(40.0)
        assert [a.writer for a in acquires(await records(journal, session_id))] == ["edge-1"] * 2
        wire.heal()
        await _haunt(driver, journal, session_id)
        assert zombie_runtime.acks == []
        watching.cancel()
        await zombie.close()
        await namesake.close()

    run_virtual(main())


async def _haunt(driver: Driver, journal: MemoryJournal, session_id: str) -> None:
    """Let an old owner try everything that it could; nothing of it may be seen."""
    log = await records(journal, session_id)
    await driver._renew(released=False)
    await driver._renew(released=True)
    await asyncio.wait([driver.closed], timeout=30.0)
    assert driver.closed.result().fenced
    head = await journal.head(session_id)
    assert head is not None
    assert head.epoch == 2
    assert head.renewed_seconds_ago < 15.0, "the old owner released what it no longer held"
    grown = await records(journal, session_id)
    assert {record.epoch for record in grown[len(log) :]} <= {2}


@pytest.mark.proves("S54", "S49")
@pytest.mark.parametrize("reloads_at", ["its owner", "another edge"])
def test_a_page_loaded_right_after_a_stop_shows_it_stopped_and_streams_nothing_old(
    reloads_at: str,
) -> None:
    async def main() -> None:
        journal, runtime = memory_journal(), RuntimeDouble(endless)
        a, b = edge(journal, runtime, seed=1), edge(journal, runtime, seed=2)
        place = a if reloads_at == "its owner" else b
        session_id = await a.create_session(UID)
        turn_id = (await a.start_turn(UID, session_id, request())).turn_id
        await Client().watch(a, session_id, stop_after=20)
        assert await a.cancel(UID, session_id, turn_id) == "accepted"
        page = await place.snapshot(UID, session_id)
        assert page["turns"][0]["state"] in ("cancelling", "finished")
        rest = Client(Cursor.parse(page["cursor"]))
        await rest.watch_to_end(place, session_id=session_id)
        assert '"outcome":"cancelled"' in rest.view[-1].data
        page = await place.snapshot(UID, session_id)
        turn = page["turns"][0]
        assert (turn["state"], turn["outcome"]) == ("finished", "cancelled")
        assert await place.attach(UID, session_id, Cursor.parse(page["cursor"]), "turn_end") is None
        events = await log_events(journal, session_id)
        await elapse(60.0)
        assert await log_events(journal, session_id) == events
        assert len(runtime.calls) == 1
        await a.close()
        await b.close()

    run_virtual(main())


@pytest.mark.proves("T37", "S19")
@pytest.mark.parametrize("kept_records", [2, 3, 4])
def test_a_page_left_open_over_a_restore_from_a_backup_ends_with_what_was_restored(
    kept_records: int,
) -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        client = Client()
        await client.watch(edges.a, session_id, stop_after=35)
        seen = list(client.view)
        log = await records(edges.journal, session_id)
        await edges.kill_a()
        restored = memory_journal()
        await restored.create_session(session_id, UID)
        for record in log[:kept_records]:
            await restored.append(session_id, [record])
        await restored.renew(session_id, Renewal(1, 1, released=True))
        place = edge(restored, edges.runtime_b, seed=3)
        await client.watch_to_end(place, session_id=session_id)
        assert client.view == await log_events(restored, session_id)
        assert client.view[: len(seen)] != seen
        assert [told for told in client.told if isinstance(told, Rewind | Reset)]
        await place.close()
        await edges.close()

    run_virtual(main())
