"""An owner dies, is cut off or is slow; another edge goes on; no client loses, repeats or forks anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from edge.core.control import Rewind
from edge.core.log import Acquire
from edge.journal.memory import MemoryJournal
from edge.ports import Clock
from edge.sessions.registry import Registry
from tests.support.faulty_journal import FaultyJournal
from tests.support.house import UID, Client, LoopClock, edge, log_events, records, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

WORDS = [f"w{n} " for n in range(40)]


class TwoEdges:
    """Edges a and b on one journal; a can be killed. Each has its own runtime, as each container has."""

    def __init__(
        self, agent: Callable[[Attempt], Awaitable[None]], clock: Clock | None = None
    ) -> None:
        self.journal = MemoryJournal(clock or LoopClock())
        self.wire_a = FaultyJournal(self.journal)
        self.runtime_a, self.runtime_b = RuntimeDouble(agent), RuntimeDouble(agent)
        self.a = edge(self.wire_a, self.runtime_a, seed=1)
        self.b = edge(self.journal, self.runtime_b, seed=2)

    async def start(self) -> str:
        session_id = await self.a.create_session(UID)
        await self.a.start_turn(UID, session_id, request())
        return session_id

    async def kill_a(self) -> None:
        """Nothing of edge a reaches the journal any more, and its streams and attempts are gone."""
        self.wire_a.cut()
        await self.runtime_a.close()
        await self.a.close()

    async def close(self) -> None:
        await self.b.close()

    @property
    def ledger(self) -> list[str]:
        return self.runtime_a.ledger + self.runtime_b.ledger


async def watch_until(client: Client, registry: Registry, session_id: str, kind: str) -> None:
    """Watch until an event of the kind was seen, then drop the socket."""
    viewer = await registry.attach(UID, session_id, client.cursor, "turn_end")
    assert viewer is not None
    while kind not in client.types:
        items = await viewer.next()
        assert items is not None
        for item in items:
            client.take(item)
    viewer.close()


async def talk(attempt: Attempt) -> None:
    await attempt.say("m1", WORDS)


@pytest.mark.proves("S05", "T38")
def test_a_turn_whose_owner_was_killed_mid_text_is_finished_by_another_edge() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        client = Client()
        await client.watch(edges.a, session_id, stop_after=12)
        await edges.kill_a()
        await client.watch_to_end(edges.b, session_id=session_id)
        assert client.view == await log_events(edges.journal, session_id)
        assert client.types.count("done") == 1
        await edges.close()

    run_virtual(main())


def test_tokens_that_were_shown_and_never_committed_are_rewound() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        edges.wire_a.lose()  # the owner shows tokens that it can never commit
        client = Client()
        await client.watch(edges.a, session_id, stop_after=9)
        assert client.types == ["turn_start", *["token"] * 8]
        await edges.kill_a()
        await client.watch_to_end(edges.b, session_id=session_id)
        assert any(isinstance(told, Rewind) for told in client.told)
        assert client.view == await log_events(edges.journal, session_id)
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("S35", "S36")
def test_a_tool_that_ended_before_the_kill_is_not_run_again() -> None:
    async def agent(attempt: Attempt) -> None:
        await attempt.tool("c1", 1.0)
        await attempt.say("m1", WORDS)

    async def main() -> None:
        edges = TwoEdges(agent)
        session_id = await edges.start()
        client = Client()
        await watch_until(client, edges.a, session_id, "token")
        await edges.kill_a()
        await client.watch_to_end(edges.b, session_id=session_id)
        assert edges.ledger == ["c1"]
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("S40")
def test_an_unsafe_tool_in_doubt_is_reported_unknown_and_never_run_again() -> None:
    async def agent(attempt: Attempt) -> None:
        await attempt.tool("c1", 60.0)

    async def main() -> None:
        edges = TwoEdges(agent)
        session_id = await edges.start()
        client = Client()
        await watch_until(client, edges.a, session_id, "tool_start")
        await elapse(1.0)
        await edges.kill_a()
        await client.watch_to_end(edges.b, session_id=session_id)
        end = next(event for event in client.view if event.type == "tool_end")
        assert '"outcome":"unknown"' in end.data
        assert edges.ledger == ["c1"]
        await edges.close()

    run_virtual(main())


def test_a_read_only_tool_in_doubt_is_run_again() -> None:
    async def agent(attempt: Attempt) -> None:
        await attempt.tool("c1", 60.0, safety="read_only")

    async def main() -> None:
        edges = TwoEdges(agent)
        session_id = await edges.start()
        client = Client()
        await watch_until(client, edges.a, session_id, "tool_start")
        await edges.kill_a()
        await client.watch_to_end(edges.b, session_id=session_id)
        end = next(event for event in client.view if event.type == "tool_end")
        assert '"outcome":"succeeded"' in end.data
        await edges.close()

    run_virtual(main())


@pytest.mark.proves("S41", "S42")
def test_an_owner_that_was_cut_off_writes_nothing_after_a_takeover_and_closes_its_streams() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        old = Client()
        await old.watch(edges.a, session_id, stop_after=3)
        stale = await edges.a.attach(UID, session_id, old.cursor, "turn_end")
        assert stale is not None
        edges.wire_a.lose()
        client = Client()
        await client.watch_to_end(edges.b, session_id=session_id)
        whole = await records(edges.journal, session_id)
        edges.wire_a.heal()
        async with asyncio.timeout(10):
            while await stale.next() is not None:
                pass
        await elapse(60)
        assert await records(edges.journal, session_id) == whole
        await edges.a.close()
        await edges.close()

    run_virtual(main())


def test_a_follower_shows_another_edges_turn_to_its_end() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        here, there = Client(), Client()
        await asyncio.gather(here.watch(edges.a, session_id), there.watch(edges.b, session_id))
        assert here.view == there.view == await log_events(edges.journal, session_id)
        acquires = [r for r in await records(edges.journal, session_id) if isinstance(r, Acquire)]
        assert len(acquires) == 1
        await edges.a.close()
        await edges.close()

    run_virtual(main())


def test_a_draining_edge_hands_its_turn_over_at_once() -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        client = Client()
        await client.watch(edges.a, session_id, stop_after=5)
        loop = asyncio.get_running_loop()
        await edges.a.drain(5.0)
        left_at = loop.time()
        await watch_until(client, edges.b, session_id, "message")
        assert loop.time() - left_at < 10.0, "a released session need not wait for its lease"
        await client.watch_to_end(edges.b, session_id=session_id)
        assert client.view == await log_events(edges.journal, session_id)
        await edges.a.close()
        await edges.close()

    run_virtual(main())


@pytest.mark.parametrize("idle_seconds", [0.0, 3600.0])
def test_a_follower_leaves_a_turn_alone_whose_owners_first_renewal_is_slow(
    idle_seconds: float,
) -> None:
    async def main() -> None:
        edges = TwoEdges(talk)
        session_id = await edges.start()
        await Client().watch(edges.a, session_id)
        await elapse(idle_seconds)  # the head is as old as the first turn
        real_renew = edges.wire_a.inner.renew

        async def slow_renew(session_id: str, renewal: object) -> None:
            await elapse(1.0)
            await real_renew(session_id, renewal)  # type: ignore[arg-type]

        edges.wire_a.inner.renew = slow_renew  # type: ignore[method-assign]
        await edges.a.start_turn(UID, session_id, request("again", key="z" * 16))
        client = Client()
        await client.watch(edges.b, session_id)
        acquires = [r for r in await records(edges.journal, session_id) if isinstance(r, Acquire)]
        assert len(acquires) == 1
        await edges.a.close()
        await edges.close()

    run_virtual(main(), limit_seconds=10_000)


class ChangedClock(LoopClock):
    """A store's clock that somebody sets."""

    ahead_ms = 3_600_000

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@pytest.mark.proves("P-LOG-13")
def test_an_owner_that_died_before_the_stores_clock_was_set_back_is_not_believed_for_longer() -> (
    None
):
    async def main() -> None:
        clock = ChangedClock()
        edges = TwoEdges(talk, clock)
        session_id = await edges.start()
        client = Client()
        await client.watch(edges.a, session_id, stop_after=5)
        await edges.kill_a()
        clock.ahead_ms = 0
        killed_at = asyncio.get_running_loop().time()
        await client.watch_to_end(edges.b, session_id=session_id)
        assert client.view == await log_events(edges.journal, session_id)
        assert asyncio.get_running_loop().time() - killed_at < 30.0
        await edges.close()

    run_virtual(main())


def test_an_owner_that_lives_is_left_alone_when_the_stores_clock_is_set_back() -> None:
    async def agent(attempt: Attempt) -> None:
        await attempt.tool("c1", 60.0)  # nothing but renewals tells that its owner lives

    async def main() -> None:
        clock = ChangedClock()
        edges = TwoEdges(agent, clock)
        session_id = await edges.start()
        client = Client()
        await watch_until(client, edges.b, session_id, "tool_start")
        clock.ahead_ms = 0
        await client.watch_to_end(edges.b, session_id=session_id)
        acquires = [r for r in await records(edges.journal, session_id) if isinstance(r, Acquire)]
        assert len(acquires) == 1
        await edges.a.close()
        await edges.close()

    run_virtual(main())
