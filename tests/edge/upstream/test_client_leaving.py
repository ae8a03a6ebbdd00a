"""Leaving a stream before its end, and waiting on one that is silent, against a real server."""

from __future__ import annotations

import asyncio

import pytest

from edge.ports import RuntimeEnded
from edge.upstream.client import GrpcRuntime
from edge.upstream.requests import RuntimeOptions
from tests.edge.upstream.conftest import CALL, REF, Counts
from tests.support.scripted_runtime import (
    ScriptedAttempt,
    ScriptedRuntime,
    emit,
    finished,
    hang,
    text,
    wait_for_cancel,
)

HELLO = emit(text("m1", "Hello"))
STREAMS = 200
READ_AHEAD_MAX_MESSAGES = 200
"""Of one KiB each: the flow-control window of 64 KiB, and what the two transports hold."""


@pytest.mark.proves("T20")
async def test_leaving_early_cancels_the_call_upstream(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(HELLO, hang())
    stream = client.start(CALL)
    async for _ in stream:
        break
    stream.cancel()
    stream.cancel()
    await runtime.until(lambda: runtime.left == ["cancelled"])
    assert [batch async for batch in stream] == []


async def test_a_cancel_ends_a_wait_for_the_next_batch_quietly(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(HELLO, hang())
    stream = client.start(CALL)
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream, None))
    await asyncio.sleep(0)
    stream.cancel()
    async with asyncio.timeout(10):
        assert await waiting is None
    await runtime.until(lambda: runtime.left == ["cancelled"])


async def test_a_stream_that_is_cancelled_before_it_is_read_never_calls(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    stream = client.start(CALL)
    stream.cancel()
    assert [batch async for batch in stream] == []
    assert runtime.requests == []


async def test_cancelling_the_reading_task_cancels_the_call_and_stays_a_cancellation(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(HELLO, hang())
    stream = client.start(CALL)
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await runtime.until(lambda: runtime.left == ["cancelled"])


async def test_closing_the_channel_under_a_reader_is_not_a_cancellation(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(HELLO, hang())
    stream = client.start(CALL)
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await client.close()
    with pytest.raises(RuntimeEnded, match="runtime_unavailable"):
        await waiting


@pytest.mark.proves("T21")
async def test_looking_up_from_a_silent_stream_does_not_break_it(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(HELLO, wait_for_cancel(), emit(finished()))
    stream = client.start(CALL)
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    for _ in range(3):
        assert await asyncio.wait({waiting}, timeout=0.05) == (set(), {waiting})
    assert await client.cancel(REF, "end the silence", grace_seconds=1)
    async with asyncio.timeout(10):
        assert [draft.type for draft in await waiting] == ["done"]


async def test_silence_ends_the_attempt_and_cancels_the_call(
    runtime: ScriptedRuntime, target: str, counts: Counts
) -> None:
    runtime.play(HELLO, hang())
    client = GrpcRuntime(target, RuntimeOptions(idle_seconds=0.2), counts)
    stream = client.start(CALL)
    await anext(stream)
    with pytest.raises(RuntimeEnded) as ended:
        await anext(stream)
    assert (ended.value.reason, ended.value.retryable) == ("runtime_timeout", True)
    await runtime.until(lambda: runtime.left == ["cancelled"])
    await client.close()


async def test_many_cancelled_streams_leave_no_task_behind(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(HELLO, hang())
    before = len(asyncio.all_tasks())  # the server's own tasks replace each other
    streams = [client.start(CALL) for _ in range(STREAMS)]
    await asyncio.gather(*(anext(stream) for stream in streams))
    for stream in streams:
        stream.cancel()
    await runtime.until(lambda: runtime.left == ["cancelled"] * STREAMS)
    async with asyncio.timeout(10):
        while len(asyncio.all_tasks()) > before:
            await asyncio.sleep(0)


@pytest.mark.proves("P-RUN-9")
async def test_a_reader_that_stalls_stops_its_runtime(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    written, stuck = 0, asyncio.Event()

    async def flood(attempt: ScriptedAttempt) -> None:
        nonlocal written
        while written < 10 * READ_AHEAD_MAX_MESSAGES:
            kilobyte = attempt.envelope(text("m1", "x" * 1000))
            writing = asyncio.ensure_future(attempt.write([kilobyte]))
            if (await asyncio.wait({writing}, timeout=0.5))[1]:
                stuck.set()
            await writing
            written += 1

    runtime.play(flood)
    stream = client.start(CALL)
    await anext(stream)
    async with asyncio.timeout(20):
        await stuck.wait()
    assert written < READ_AHEAD_MAX_MESSAGES
    stream.cancel()
    await runtime.until(lambda: bool(runtime.left))
