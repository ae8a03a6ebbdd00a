"""Streams against a real gRPC server: order, batches, every end, and what leaving early does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc
import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core.event import Draft, Event
from edge.ports import AttemptStream, AttemptSuperseded, RuntimeEnded
from edge.upstream.client import MAX_MESSAGE_BYTES, GrpcRuntime
from edge.upstream.requests import RuntimeOptions
from tests.edge.upstream.conftest import CALL, Counts
from tests.support.scripted_runtime import (
    ScriptedRuntime,
    Step,
    abort,
    completed,
    emit,
    finished,
    hang,
    send,
    text,
    tool_started,
    wrap,
)

HELLO = emit(pb.TurnStarted(instance_id="i"), text("m1", "Hel"))


async def read(stream: AttemptStream) -> list[Draft]:
    """Read to the end."""
    async with asyncio.timeout(10):
        return [draft async for batch in stream for draft in batch]


async def broken(stream: AttemptStream) -> tuple[list[Draft], RuntimeEnded]:
    """Read to the failure."""
    drafts: list[Draft] = []

    async def to_the_end() -> None:
        async for batch in stream:
            drafts.extend(batch)

    async with asyncio.timeout(10):
        with pytest.raises(RuntimeEnded) as ended:
            await to_the_end()
    return drafts, ended.value


async def test_one_message_is_one_batch_in_order(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(
        HELLO,
        emit(pb.Heartbeat()),
        emit(text("m1", "lo"), text("m1", "!"), completed("m1", "Hello!")),
        emit(finished()),
    )
    stream = client.start(CALL)
    async with asyncio.timeout(10):
        batches = [[draft.index for draft in batch] async for batch in stream]
    assert batches == [[2], [3, 4, 5], [6]]
    assert runtime.left == ["finished"]


async def test_a_stream_that_ends_well_without_a_last_event_just_ends(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(HELLO)
    assert [draft.type for draft in await read(client.start(CALL))] == ["token"]


async def test_a_started_stream_can_be_read_again_only_to_its_end(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(HELLO)
    stream = client.start(CALL)
    await read(stream)
    assert await read(stream) == []
    assert len(runtime.requests) == 1


STATUSES = [
    (grpc.StatusCode.UNAVAILABLE, "runtime_unavailable", True),
    (grpc.StatusCode.CANCELLED, "runtime_unavailable", True),
    (grpc.StatusCode.UNKNOWN, "runtime_error", True),
    (grpc.StatusCode.INTERNAL, "runtime_error", True),
    (grpc.StatusCode.DATA_LOSS, "runtime_error", True),
    (grpc.StatusCode.FAILED_PRECONDITION, "runtime_error", True),
    (grpc.StatusCode.OUT_OF_RANGE, "runtime_error", True),
    (grpc.StatusCode.ALREADY_EXISTS, "runtime_error", True),
    (grpc.StatusCode.DEADLINE_EXCEEDED, "runtime_timeout", True),
    (grpc.StatusCode.RESOURCE_EXHAUSTED, "runtime_overloaded", True),
    (grpc.StatusCode.UNAUTHENTICATED, "runtime_auth", False),
    (grpc.StatusCode.PERMISSION_DENIED, "runtime_auth", False),
    (grpc.StatusCode.UNIMPLEMENTED, "runtime_incompatible", False),
    (grpc.StatusCode.INVALID_ARGUMENT, "runtime_protocol_error", False),
    (grpc.StatusCode.NOT_FOUND, "unknown_agent", False),
]


def test_every_status_but_ok_and_aborted_has_a_reason() -> None:
    assert {code for code, _, _ in STATUSES} == set(grpc.StatusCode) - {
        grpc.StatusCode.OK,
        grpc.StatusCode.ABORTED,
    }


@pytest.mark.parametrize(("code", "reason", "retryable"), STATUSES)
async def test_a_status_ends_the_stream_with_its_reason_after_all_events(
    runtime: ScriptedRuntime,
    client: GrpcRuntime,
    code: grpc.StatusCode,
    reason: str,
    retryable: bool,
) -> None:
    runtime.play(*[emit(text("m1", "x"))] * 50, abort(code, "what the user said"))
    drafts, ended = await broken(client.start(CALL))
    assert len(drafts) == 50
    assert (ended.reason, ended.retryable) == (reason, retryable)
    assert "user" not in str(ended)
    assert ended.__suppress_context__


async def test_a_higher_attempt_elsewhere_supersedes_this_one(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(abort(grpc.StatusCode.ABORTED))
    with pytest.raises(AttemptSuperseded):
        await read(client.start(CALL))


async def test_a_runtime_that_is_not_there_is_unavailable(counts: Counts) -> None:
    # Port 1 is reserved and closed on loopback: the connection is refused at once.
    client = GrpcRuntime("127.0.0.1:1", RuntimeOptions(), counts)
    _, ended = await broken(client.start(CALL))
    assert (ended.reason, ended.retryable) == ("runtime_unavailable", True)
    await client.close()


async def test_a_runtime_that_dies_in_mid_stream_is_unavailable(counts: Counts) -> None:
    runtime = ScriptedRuntime()
    runtime.play(HELLO, hang())
    async with runtime.serve() as target:
        client = GrpcRuntime(target, RuntimeOptions(), counts)
        stream = client.start(CALL)
        assert len(await anext(stream)) == 1
    _, ended = await broken(stream)
    assert (ended.reason, ended.retryable) == ("runtime_unavailable", True)
    await client.close()


async def test_a_message_beyond_the_limit_is_refused_unread(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(HELLO, emit(text("m1", "x" * 2 * MAX_MESSAGE_BYTES)))
    drafts, ended = await broken(client.start(CALL))
    assert len(drafts) == 1
    assert (ended.reason, ended.retryable) == ("event_too_large", False)


async def test_a_request_beyond_the_runtimes_limit_is_not_an_event_of_the_runtime(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    # The server of the script takes 4 MiB, which is what gRPC takes by default.
    runtime.play(emit(finished()))
    said = {"type": "text", "text": "x" * 5 * 1024 * 1024}
    _, ended = await broken(client.start(replace(CALL, input=[said])))
    assert (ended.reason, ended.retryable) == ("history_too_large", False)


@pytest.mark.proves("P-EVT-8")
async def test_a_huge_event_in_a_small_enough_message_ends_the_attempt_after_what_it_follows(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(emit(text("m1", "a"), tool_started("c1", "x" * 70_000)), hang())
    drafts, ended = await broken(client.start(CALL))
    assert [draft.type for draft in drafts] == ["token"]
    assert (ended.reason, ended.retryable) == ("event_too_large", False)
    await runtime.until(lambda: runtime.left == ["cancelled"])


@pytest.mark.parametrize(
    "step",
    [
        send(wrap(text("m1", "a"), index=2)),
        emit(finished(), text("m1", "a")),
        emit(pb.TurnFinished()),
    ],
)
async def test_a_broken_promise_ends_the_attempt_and_cancels_the_call(
    runtime: ScriptedRuntime, client: GrpcRuntime, step: Step
) -> None:
    runtime.play(step, hang())
    _, ended = await broken(client.start(CALL))
    assert (ended.reason, ended.retryable) == ("runtime_protocol_error", False)
    await runtime.until(lambda: runtime.left == ["cancelled"])


async def test_bytes_that_are_no_message_are_an_error_of_the_runtime(counts: Counts) -> None:
    async def garbage(_: bytes, __: object) -> AsyncIterator[bytes]:
        yield pb.RunTurnResponse(events=[wrap(text("m1", "a"), index=1)]).SerializeToString()
        yield (
            pb.RunTurnResponse(events=[wrap(text("m1", "b"), index=2)]).SerializeToString()[:-1]
            + b"\xff"
        )

    method: Any = grpc.unary_stream_rpc_method_handler(garbage)
    service = "unbroken.v1.AgentRuntimeService"
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {"RunTurn": method})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    client = GrpcRuntime(f"127.0.0.1:{port}", RuntimeOptions(), counts)
    drafts, ended = await broken(client.start(CALL))
    assert len(drafts) == 1
    assert (ended.reason, ended.retryable) == ("runtime_error", True)
    await client.close()
    await server.stop(grace=None)


async def test_a_history_that_cannot_be_read_back_asks_nothing_of_the_runtime(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    call = replace(CALL, history=[Event(1, 1, "of_a_newer_edge", "{}")])
    _, ended = await broken(client.start(call))
    assert (ended.reason, ended.retryable) == ("history_unreadable", False)
    assert runtime.requests == []
