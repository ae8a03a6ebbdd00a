"""How much silence an attempt may leave, in virtual time: a call that is no network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from google.protobuf.message import Message
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.ports import RuntimeEnded
from edge.upstream.attempt import AttemptReader, GrpcAttempt
from edge.upstream.requests import RuntimeOptions
from tests.edge.upstream.conftest import Counts
from tests.support.scripted_runtime import finished, text, wrap
from tests.support.virtual_loop import Deadlock, run_virtual

IDLE_SECONDS = RuntimeOptions().idle_seconds


class TimedCall:
    """A call whose messages arrive at given times, and whose cancellation is grpc.aio's."""

    def __init__(self, messages: Sequence[tuple[float, int, Message]]) -> None:
        self._messages = iter(messages)
        self._cancelled = asyncio.Event()

    async def read(self) -> object:
        at, index, payload = next(self._messages)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(max(at, loop.time())):
                await self._cancelled.wait()
        except TimeoutError:
            return pb.RunTurnResponse(events=[wrap(payload, index=index)])
        raise asyncio.CancelledError

    def cancel(self) -> bool:
        self._cancelled.set()
        return True


def attempt(*messages: tuple[float, int, Message]) -> GrpcAttempt:
    reader = AttemptReader("t1", Counts())
    return GrpcAttempt(lambda: TimedCall(messages), reader, IDLE_SECONDS)


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_runtime_may_be_silent_almost_as_long_as_allowed_each_time() -> None:
    async def main() -> list[str]:
        stream = attempt((59, 1, text("m1", "a")), (118, 2, text("m1", "b")), (177, 3, finished()))
        return [(await anext(stream))[0].type for _ in range(3)]

    assert run_virtual(main()) == ["token", "token", "done"]


@pytest.mark.proves("T21", "P-RUN-12")
def test_heartbeats_keep_a_silent_tool_alive() -> None:
    async def main() -> float:
        beats = [(10.0 * n, 0, pb.Heartbeat()) for n in range(1, 100)]
        stream = attempt(*beats, (1000, 1, finished()))
        assert [draft.type for draft in await anext(stream)] == ["done"]
        return now()

    assert run_virtual(main()) == 1000


@pytest.mark.proves("P-RUN-12")
def test_longer_silence_ends_the_attempt_when_it_is_over_and_not_later() -> None:
    async def main() -> None:
        stream = attempt((45, 1, text("m1", "a")), (1000, 2, finished()))
        await anext(stream)
        with pytest.raises(RuntimeEnded) as ended:
            await anext(stream)
        assert (ended.value.reason, ended.value.retryable) == ("runtime_timeout", True)
        assert now() == 45 + IDLE_SECONDS

    run_virtual(main())


def test_a_reader_that_takes_its_time_is_not_a_silent_runtime() -> None:
    async def main() -> None:
        stream = attempt((1, 1, text("m1", "a")), (2, 2, text("m1", "b")), (640, 3, finished()))
        await anext(stream)
        await asyncio.sleep(10 * IDLE_SECONDS - 2)
        await anext(stream)
        assert [draft.type for draft in await anext(stream)] == ["done"]

    run_virtual(main())


def test_no_timer_outlives_the_stream() -> None:
    async def main() -> None:
        stream = attempt((1, 1, finished()))
        await anext(stream)
        stream.cancel()
        await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run_virtual(main())
