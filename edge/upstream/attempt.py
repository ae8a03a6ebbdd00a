"""The stream of one attempt: batches of drafts in the order that the runtime promised, or a reason.

Knows nothing of channels, sessions or what a turn needs: whether a terminal event was seen is for
the session to judge.

Invariants: a batch is never empty; what stood before a fault in the same message is handed on
before the fault is raised; once the iteration has ended, for whatever reason, the call is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import grpc
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core.errors import LogBroken
from edge.core.event import SUSPENDED, TERMINAL, Draft
from edge.ports import RuntimeEnded, Telemetry
from edge.upstream.fields import WireFault
from edge.upstream.status import failure_of
from edge.upstream.wire import is_unsupported, to_draft

_LAST = TERMINAL | {SUSPENDED}

Response = pb.RunTurnResponse | pb.ResumeTurnResponse


class Call(Protocol):
    """A server-streaming call, as ``grpc.aio`` makes it."""

    async def read(self) -> object:
        """Return the next message, or ``grpc.aio.EOF`` at the end of the stream."""

    def cancel(self) -> bool:
        """Stop the call."""


class AttemptReader:
    """Turns an attempt's events into drafts and holds the runtime to its order."""

    def __init__(self, turn_id: str, telemetry: Telemetry) -> None:
        self._turn_id = turn_id
        self._telemetry = telemetry
        self._index = 0
        self._ended = False

    def read(self, events: Sequence[pb.AgentEvent]) -> Iterator[Draft]:
        """Yield the drafts of the next events.

        Raises:
            WireFault: the runtime broke the protocol; every draft before that was yielded.
        """
        for event in events:
            if self._ended:
                raise WireFault("an event follows the last one of its attempt")
            draft = to_draft(event, self._turn_id)
            if draft is None:
                self._pass_over(event)
                continue
            self._advance(draft.index, self._index + 1)
            self._ended = draft.type in _LAST
            yield draft

    def _pass_over(self, event: pb.AgentEvent) -> None:
        repeats = event.HasField("heartbeat")
        self._advance(event.index, self._index if repeats else self._index + 1)
        if is_unsupported(event):
            self._telemetry.count("runtime_events_skipped")

    def _advance(self, index: int, expected: int) -> None:
        if index != expected:
            raise WireFault(f"index {index} where {expected} was due")
        self._index = index


class GrpcAttempt:
    """An ``edge.ports.AttemptStream`` over one call, which is made when the first batch is asked for.

    ``idle_seconds`` bounds the runtime's silence while a batch is waited for: a reader that takes
    its time is not silence.
    """

    def __init__(
        self, start: Callable[[], Call], reader: AttemptReader, idle_seconds: float
    ) -> None:
        self._start = start
        self._reader = reader
        self._idle_seconds = idle_seconds
        self._call: Call | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since: float | None = None
        self._failure: RuntimeEnded | None = None
        self._left = False

    def __aiter__(self) -> GrpcAttempt:
        return self

    async def __anext__(self) -> list[Draft]:
        batch: list[Draft] = []
        try:
            while not batch:
                self._decode(await self._receive(), batch)
        finally:
            if not batch:
                self.cancel()
        return batch

    def cancel(self) -> None:
        """Stop the call now. Idempotent; a batch that is waited for ends the iteration."""
        self._left = True
        if self._timer is not None:
            self._timer.cancel()
        if self._call is not None:
            self._call.cancel()

    async def _receive(self) -> Response:
        """Return the next message. A heartbeat is one, and so a sign of life."""
        if self._failure is not None:
            raise self._failure
        if self._left:
            raise StopAsyncIteration
        call = self._call or self._open()
        self._waiting_since = asyncio.get_running_loop().time()
        try:
            message = await call.read()
        except asyncio.CancelledError:
            self._explain_cancellation()
            raise
        except grpc.aio.AioRpcError as error:
            raise failure_of(error) from None
        finally:
            self._waiting_since = None
        return _message(message)

    def _decode(self, response: Response, batch: list[Draft]) -> None:
        try:
            for draft in self._reader.read(response.events):
                batch.append(draft)  # noqa: PERF402 - keeps what stands before a fault
        except WireFault as fault:
            self._failure = RuntimeEnded(fault.reason, retryable=False)
            self._failure.__cause__ = fault

    def _open(self) -> Call:
        try:
            self._call = self._start()
        except LogBroken as error:
            raise RuntimeEnded("history_unreadable", retryable=False) from error
        self._watch(self._idle_seconds)
        return self._call

    def _watch(self, seconds: float) -> None:
        """Look again in ``seconds``: one timer a stream, never one a message."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._end_silence)

    def _end_silence(self) -> None:
        now = asyncio.get_running_loop().time()
        silence = 0.0 if self._waiting_since is None else now - self._waiting_since
        if silence < self._idle_seconds:
            self._watch(self._idle_seconds - silence)
            return
        self._failure = RuntimeEnded("runtime_timeout", retryable=True)
        if self._call is not None:
            self._call.cancel()

    def _explain_cancellation(self) -> None:
        """Raise what a cancelled read stands for, unless it is the reading task that is cancelled."""
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            return
        if self._left:
            raise StopAsyncIteration
        if self._failure is None:  # somebody closed the channel
            self._failure = RuntimeEnded("runtime_unavailable", retryable=True)
        raise self._failure from None


def _message(message: object) -> Response:
    if isinstance(message, Response):
        return message
    if message is grpc.aio.EOF:
        raise StopAsyncIteration
    # gRPC gives None for bytes that are no message, and keeps the parser's error to itself.
    raise RuntimeEnded("runtime_error", retryable=True)
