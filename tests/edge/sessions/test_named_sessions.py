"""Sessions whose id a client chose, and what is told of their newest turn."""

from __future__ import annotations

import asyncio

import pytest

from edge.core.cursor import START
from edge.core.errors import Draining, SessionNotFound
from edge.journal.memory import MemoryJournal
from edge.ports import Head
from tests.support.house import UID, Client, LoopClock, edge, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import run_virtual

CHAT = "chosen-by-a-client"


async def short(attempt: Attempt) -> None:
    await attempt.say("m1", ["Hi."])


async def asks(attempt: Attempt) -> None:
    attempt.ask("c1")
    await attempt.say("m1", ["Thanks."])


def test_a_claimed_session_is_its_users_and_missing_to_everybody_else() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(short))
        for _ in range(2):
            await registry.claim_session(UID, CHAT)
        with pytest.raises(SessionNotFound):
            await registry.claim_session("eve", CHAT)
        with pytest.raises(SessionNotFound):
            await registry.recap("eve", CHAT)
        assert await registry.recap(UID, CHAT) is None
        await registry.close()

    run_virtual(main())


def test_of_many_who_claim_at_once_on_many_edges_one_user_has_it() -> None:
    async def main() -> None:
        journal = memory_journal()
        edges = [edge(journal, RuntimeDouble(short), seed=n) for n in (1, 2, 3)]
        claims = [r.claim_session(uid, CHAT) for r in edges for uid in (UID, "eve", UID)]
        answers = await asyncio.gather(*claims, return_exceptions=True)
        owner = (await journal.head(CHAT)).owner  # type: ignore[union-attr]
        mine = [answer is None for answer in answers]
        assert mine == [uid == owner for _ in edges for uid in (UID, "eve", UID)]
        for registry in edges:
            await registry.close()

    run_virtual(main())


class LateJournal(MemoryJournal):
    """Shows a head only to the second who looks: somebody creates the session between look and claim."""

    looks = 0

    async def head(self, session_id: str) -> Head | None:
        self.looks += 1
        return await super().head(session_id) if self.looks > 1 else None


@pytest.mark.parametrize("quicker", [UID, "eve"])
def test_a_claim_that_somebody_beat_holds_if_it_was_the_same_user(quicker: str) -> None:
    async def main() -> None:
        journal = LateJournal(LoopClock())
        await journal.create_session(CHAT, quicker)
        registry = edge(journal, RuntimeDouble(short))
        if quicker == UID:
            await registry.claim_session(UID, CHAT)
        else:
            with pytest.raises(SessionNotFound):
                await registry.claim_session(UID, CHAT)
        assert journal.looks == 2
        await registry.close()

    run_virtual(main())


def test_a_draining_edge_takes_no_claim() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(short))
        await registry.drain(1.0)
        with pytest.raises(Draining):
            await registry.claim_session(UID, CHAT)
        await registry.close()

    run_virtual(main())


def test_a_recap_holds_the_newest_turn_from_its_first_event_on() -> None:
    async def main() -> None:
        journal = memory_journal()
        registry, follower = (edge(journal, RuntimeDouble(short), seed=n) for n in (1, 2))
        await registry.claim_session(UID, CHAT)
        await registry.start_turn(UID, CHAT, request())
        client = Client()
        await client.watch(registry, CHAT)
        second = await registry.start_turn(UID, CHAT, request(key="second-" * 3))
        await client.watch(registry, CHAT)
        for teller in (registry, follower):
            recap = await teller.recap(UID, CHAT)
            assert recap is not None
            assert (recap.turn_id, recap.before) == (second.turn_id, second.cursor)
            assert recap.before != START
            assert [e.type for e in recap.events] == ["turn_start", "message", "done"]
            assert (recap.finished, recap.waiting) == (True, ())
        for teller in (registry, follower):
            await teller.close()

    run_virtual(main())


def test_a_recap_names_the_calls_that_wait_for_a_person() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(asks))
        await registry.claim_session(UID, CHAT)
        await registry.start_turn(UID, CHAT, request())
        recap = await registry.recap(UID, CHAT)
        async with asyncio.timeout(10):
            while recap is None or not recap.waiting:
                await asyncio.sleep(0.1)
                recap = await registry.recap(UID, CHAT)
        assert (recap.finished, recap.waiting) == (False, ("c1",))
        assert recap.events[-1].type == "suspended"
        await registry.close()

    run_virtual(main())
