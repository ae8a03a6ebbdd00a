"""The real runtime service called without a network: for tests of both sides under virtual time.

Deliberately absent: gRPC's own transport, with its deadlines, flow control and threads. Messages are
serialised and parsed as on the wire, a status is what ``grpc.aio`` raises, and a caller that leaves has its
handler cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn, cast

import grpc
from google.protobuf.message import Message

from edge.telemetry import Metrics
from edge.upstream.client import GrpcRuntime
from edge.upstream.requests import RuntimeOptions

Parse = Callable[[bytes], object]


def local_runtime(service: object, options: RuntimeOptions) -> GrpcRuntime:
    """Return the edge's own client, over a connection of its own to a service in this process."""
    runtime = GrpcRuntime("", options, Metrics())
    runtime._channel = cast(grpc.aio.Channel, LocalChannel(service))
    return runtime


class LocalChannel:
    """What a generated stub uses of ``grpc.aio.Channel``."""

    def __init__(self, service: object) -> None:
        self._service = service
        self._calls: dict[LocalCall, None] = {}

    def unary_unary(
        self, path: str, *, response_deserializer: Parse, **_rest: object
    ) -> Callable[..., Awaitable[object]]:
        handler = self._handler(path)

        async def call(request: Message, *, timeout: float) -> object:  # noqa: ASYNC109
            async with asyncio.timeout(timeout):
                response = await handler(_resent(request), _Context())
            return response_deserializer(response.SerializeToString())

        return call

    def unary_stream(
        self, path: str, *, response_deserializer: Parse, **_rest: object
    ) -> Callable[[Message], LocalCall]:
        handler = self._handler(path)

        def call(request: Message) -> LocalCall:
            made = LocalCall(handler, _resent(request), response_deserializer)
            self._calls[made] = None
            return made

        return call

    async def close(self, _grace: float | None = None) -> None:
        """Cut every call that is under way."""
        for call in self._calls:
            call.cancel()

    def _handler(self, path: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        handler = getattr(self._service, path.rpartition("/")[2])
        return cast(Callable[..., Coroutine[Any, Any, Any]], handler)


class _Context:
    """What a handler uses of ``grpc.aio.ServicerContext``."""

    async def abort(self, code: grpc.StatusCode, details: str = "") -> NoReturn:
        nothing = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(code, nothing, nothing, details=details)


class LocalCall(_Context):
    """One server-streaming call: at once the caller's end and the handler's context."""

    def __init__(
        self,
        handler: Callable[..., Coroutine[Any, Any, None]],
        request: Message,
        parse: Parse,
    ) -> None:
        self._parse = parse
        self._arrived: asyncio.Queue[object] = asyncio.Queue()
        self._serving = asyncio.get_running_loop().create_task(self._serve(handler(request, self)))

    async def _serve(self, work: Coroutine[Any, Any, None]) -> None:
        end: object = grpc.aio.EOF
        try:
            await work
        except grpc.aio.AioRpcError as status:
            end = status
        self._arrived.put_nowait(end)

    async def write(self, response: Message) -> None:
        self._arrived.put_nowait(self._parse(response.SerializeToString()))

    async def read(self) -> object:
        item = await self._arrived.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def cancel(self) -> bool:
        self._serving.cancel()
        self._arrived.put_nowait(asyncio.CancelledError())
        return True


def _resent(request: Message) -> Message:
    """Return what arrives at the other end."""
    return type(request).FromString(request.SerializeToString())
