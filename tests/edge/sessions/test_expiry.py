"""Credentials that end while a stream goes on: what its viewer is told and when, and that the turn hears nothing."""

from __future__ import annotations

import asyncio

import pytest

from edge.core.control import Reauth, Reconnect
from edge.core.requests import Until
from edge.sessions.registry import Registry
from edge.sessions.viewer import Viewer
from tests.support.house import UID, Client, LoopClock, edge, log_events, memory_journal, request
from tests.support.runtime_double import Attempt, RuntimeDouble
from tests.support.virtual_loop import elapse, run_virtual

pytestmark = pytest.mark.proves("P-SSE-21", "T50")


async def for_minutes(attempt: Attempt) -> None:
    await attempt.say("m1", [f"w{n} " for n in range(300)], every_seconds=1.0)


async def quiet(attempt: Attempt) -> None:
    await attempt.tool("c1", 1_000.0)


async def attach(
    registry: Registry, session_id: str, seconds: float, until: Until = "turn_end"
) -> Viewer:
    """Attach a viewer whose caller's credentials hold for that long."""
    viewer = await registry.attach(UID, session_id, None, until)
    assert viewer is not None
    viewer.expires_at_ms = LoopClock().now_ms() + int(seconds * 1000)
    return viewer


async def read(viewer: Viewer, client: Client) -> list[tuple[float, Reauth | Reconnect]]:
    """Read to the end; return when what was said of the credentials."""
    now = asyncio.get_running_loop().time
    told: list[tuple[float, Reauth | Reconnect]] = []
    begun_at = now()
    while (items := await viewer.next()) is not None:
        for item in items:
            client.take(item)
            if isinstance(item, Reauth | Reconnect):
                told.append((now() - begun_at, item))
    viewer.close()
    return told


async def started(registry: Registry) -> str:
    session_id = await registry.create_session(UID)
    await registry.start_turn(UID, session_id, request())
    return session_id


@pytest.mark.parametrize("work", [for_minutes, quiet])
def test_a_stream_is_warned_a_minute_before_and_ended_when_the_credentials_end(
    work: object,
) -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(work))  # type: ignore[arg-type]
        viewer = await attach(registry, await started(registry), 200.0)
        (warned_at, warning), (ended_at, end) = await read(viewer, Client())
        assert 140 <= warned_at <= 141 and 200 <= ended_at <= 201
        assert isinstance(warning, Reauth) and 59_000 <= warning.in_ms <= 60_000
        assert isinstance(end, Reconnect)
        assert end.reason == "token_expired" and 50 <= end.retry_ms <= 500
        await registry.close()

    run_virtual(main())


def test_credentials_that_end_soon_are_told_of_at_once() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(quiet))
        viewer = await attach(registry, await started(registry), 20.0)
        (warned_at, warning), (_, end) = await read(viewer, Client())
        assert warned_at <= 1
        assert isinstance(warning, Reauth) and 19_000 <= warning.in_ms <= 20_000
        assert isinstance(end, Reconnect)
        await registry.close()

    run_virtual(main())


def test_credentials_that_have_ended_meanwhile_end_the_stream_without_a_warning() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(quiet))
        viewer = await attach(registry, await started(registry), -5.0)
        ((ended_at, end),) = await read(viewer, Client())
        assert ended_at <= 1 and isinstance(end, Reconnect)
        await registry.close()

    run_virtual(main())


def test_a_reader_that_is_always_slow_is_ended_all_the_same() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(for_minutes))
        viewer = await attach(registry, await started(registry), 100.0)
        begun_at = asyncio.get_running_loop().time()
        while await viewer.next() is not None:
            await elapse(7.0)  # so whenever somebody looks, it writes
        assert asyncio.get_running_loop().time() - begun_at <= 115
        viewer.close()
        await registry.close()

    run_virtual(main())


def test_the_turn_goes_on_and_who_comes_back_with_others_has_it_whole() -> None:
    async def main() -> None:
        journal = memory_journal()
        registry = edge(journal, RuntimeDouble(for_minutes))
        session_id, client = await started(registry), Client()
        await read(await attach(registry, session_id, 30.0), client)
        assert not client.finished
        await client.watch_to_end(registry, session_id=session_id)
        assert client.view == await log_events(journal, session_id)
        await registry.close()

    run_virtual(main())


def test_a_stream_whose_life_ends_first_says_nothing_of_credentials() -> None:
    async def main() -> None:
        registry = edge(memory_journal(), RuntimeDouble(quiet))
        viewer = await attach(registry, await started(registry), 3_600.0, "follow")
        ((_, end),) = await read(viewer, Client())
        assert isinstance(end, Reconnect) and end.reason == "deadline"
        await registry.close()

    run_virtual(main())
