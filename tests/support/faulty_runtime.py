"""A runtime that fails on demand: one edge's view of a runtime that others may still reach.

Knows nothing of which runtime it wraps, nor of what a fault does (``tests.support.faulty_calls``). The first
read of a stream, which opens it, is the call ``open``, every further one ``next``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from edge.core.errors import RuntimeUnavailable
from edge.core.event import Draft
from edge.ports import AttemptCall, AttemptRef, AttemptStream, Runtime, RuntimeEnded, RuntimeInfo
from tests.support.faulty_calls import FaultyCalls, Plan


class FaultyRuntime(FaultyCalls):
    """Wraps a runtime; without a plan it changes nothing."""

    def __init__(self, inner: Runtime, plan: Plan | None = None) -> None:
        super().__init__(plan)
        self.inner = inner

    async def info(self) -> RuntimeInfo:
        return await self.through("info", self.inner.info, RuntimeUnavailable())

    def start(self, call: AttemptCall) -> FaultyStream:
        return FaultyStream(self, call)

    async def ack(self, ref: AttemptRef, committed_index: int) -> bool:
        async def acknowledge() -> bool:
            return await self.inner.ack(ref, committed_index)

        return await self._tell("ack", acknowledge)

    async def cancel(self, ref: AttemptRef, reason: str, grace_seconds: float) -> bool:
        async def stop() -> bool:
            return await self.inner.cancel(ref, reason, grace_seconds)

        return await self._tell("cancel", stop)

    async def _tell(self, method: str, call: Callable[[], Awaitable[bool]]) -> bool:
        """As the port says, whoever does not know whether the attempt was told says no."""
        try:
            return await self.through(method, call, _Untold())
        except _Untold:
            return False

    async def close(self) -> None:
        await self.inner.close()


class _Untold(Exception):
    """No answer came."""


class FaultyStream:
    """The edge's end of one attempt."""

    def __init__(self, runtime: FaultyRuntime, call: AttemptCall) -> None:
        self._runtime = runtime
        self._call = call
        self._inner = runtime.inner.start(call)
        self._batches = aiter(self._inner)
        self._opened = False

    def __aiter__(self) -> FaultyStream:
        return self

    async def __anext__(self) -> Sequence[Draft]:
        broken = RuntimeEnded("runtime_unavailable", retryable=True)
        if self._opened:
            return await self._runtime.through("next", self._next, broken)
        self._opened = True
        return await self._runtime.through("open", self._next, broken, late=self._open_unheard)

    async def _next(self) -> Sequence[Draft]:
        return await anext(self._batches)

    async def _open_unheard(self) -> None:
        """The request arrives after all, over a connection that nobody reads and nobody has closed."""
        unheard: AttemptStream = self._runtime.inner.start(self._call)
        async for _ in unheard:
            pass

    def cancel(self) -> None:
        self._inner.cancel()
