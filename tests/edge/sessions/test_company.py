"""Several connections to one turn: none takes anything from another, whichever edge it hangs on."""

from __future__ import annotations

import asyncio

import pytest

from edge.core.cursor import START, Cursor
from edge.sessions.settings import SessionSettings
from edge.sessions.tail import Shown
from edge.sessions.viewer import Viewer
from tests.edge.sessions.test_takeover import TwoEdges
from tests.support.house import UID, Client, edge, log_events, memory_journal, records, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

SMALL = SessionSettings(
    tail_limit_bytes=1_000, batch_limit_bytes=300, page_records=2, stall_seconds=1e9
)


async def long_talk(attempt: Attempt) -> None:
    """Say two hundred words in ten seconds."""
    await attempt.say("m1", [f"w{n} " for n in range(200)])


async def read_on(viewer: Viewer, client: Client) -> None:
    while (items := await viewer.next()) is not None:
        for item in items:
            client.take(item)


@pytest.mark.proves("S03", "T33")
@pytest.mark.parametrize("settings", [SessionSettings(stall_seconds=1e9), SMALL])
def test_a_connection_that_reads_nothing_and_the_one_after_it_both_get_the_whole_stream(
    settings: SessionSettings,
) -> None:
    async def main() -> None:
        journal = memory_journal()
        registry = edge(journal, RuntimeDouble(long_talk), settings)
        session_id = await registry.create_session(UID)
        await registry.start_turn(UID, session_id, request())
        half_open = await registry.attach(UID, session_id, None, "turn_end")
        assert half_open is not None
        old, new = Client(), Client()
        for item in await half_open.next() or []:
            old.take(item)
        await new.watch_to_end(registry, session_id=session_id)
        await read_on(half_open, old)
        whole = await log_events(journal, session_id)
        assert new.view == whole
        assert old.view == whole
        half_open.close()
        await registry.close()

    run_virtual(main())


@pytest.mark.proves("S62")
@pytest.mark.parametrize("at_owner", [True, False], ids=["at the owner", "at a follower"])
def test_a_second_tab_is_shown_what_happens_within_a_second_of_it(at_owner: bool) -> None:
    async def main() -> None:
        edges = TwoEdges(long_talk)
        session_id = await edges.start()
        first = asyncio.create_task(Client().watch(edges.a, session_id))
        await elapse(3.0)
        viewer = await (edges.a if at_owner else edges.b).attach(UID, session_id, None, "turn_end")
        assert viewer is not None
        loop, arrivals = asyncio.get_running_loop(), dict[int, float]()
        while (items := await viewer.next()) is not None:
            for item in items:
                if isinstance(item, Shown):
                    arrivals[item.event.seq] = loop.time()
        # The n-th word is said after n twentieths of a second, and is event n + 2.
        late = [at - (seq - 2) / 20 for seq, at in arrivals.items() if 62 < seq <= 201]
        assert max(late) < 1.0
        await first
        viewer.close()
        await edges.a.close()
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("S21", "S02", "S07")
def test_a_resume_amid_a_record_begins_with_the_very_next_event_whatever_others_have_read() -> None:
    async def main() -> None:
        journal = memory_journal()
        writer = edge(journal, RuntimeDouble(long_talk), SMALL)
        session_id = await writer.create_session(UID)
        await writer.start_turn(UID, session_id, request())
        await Client().watch_to_end(writer, session_id=session_id)
        whole = await log_events(journal, session_id)
        assert len(await records(journal, session_id)) < len(whole) / 3
        reader = edge(journal, RuntimeDouble(long_talk), SMALL, seed=2)
        cursors = [START, *(Cursor(event.epoch, event.seq) for event in whole[:-1])]
        for position, cursor in enumerate(cursors):
            client = Client(cursor)
            await client.watch(reader, session_id)
            assert client.view == whole[position:]
        await writer.close()
        await reader.close()

    run_virtual(main())
