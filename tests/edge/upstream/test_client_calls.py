"""Requests, the two unary messages to an attempt, and how the channel is made."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core import drafts
from edge.core.errors import RuntimeUnavailable
from edge.core.event import Event
from edge.ports import AttemptRef, RuntimeEnded, RuntimeInfo
from edge.upstream.client import CHANNEL_OPTIONS, MAX_MESSAGE_BYTES, GrpcRuntime
from edge.upstream.requests import RuntimeOptions
from edge.upstream.wire import MAX_EVENT_BYTES
from tests.edge.upstream.conftest import CALL, REF, Counts
from tests.support.scripted_runtime import (
    ScriptedRuntime,
    emit,
    finished,
    hang,
    tool_finished,
    tool_started,
    wait_for_ack,
)

START = drafts.turn_start("t1", "script", attempt=1)
HISTORY = [Event(2, 9, START.type, START.data)]


async def test_attempt_1_runs_the_turn_with_its_input_and_options(
    runtime: ScriptedRuntime, target: str, counts: Counts
) -> None:
    runtime.play(emit(finished()))
    options = RuntimeOptions(checkpoint_mode="suspend", heartbeat_seconds=2.5)
    client = GrpcRuntime(target, options, counts)
    said = [{"type": "text", "text": "Hi"}, {"type": "data", "data_json": "[1]"}]
    await anext(client.start(replace(CALL, input=said)))
    expected = pb.RunTurnRequest(
        turn=pb.TurnRef(session_id="s1", turn_id="t1", attempt=1, user_id="u1"),
        agent="script",
        input=[pb.ContentPart(text="Hi"), pb.ContentPart(data_json="[1]")],
        options=pb.TurnOptions(
            checkpoint_mode=pb.CHECKPOINT_MODE_SUSPEND,
            hold_timeout=Duration(seconds=10),
            heartbeat_interval=Duration(seconds=2, nanos=500_000_000),
        ),
    )
    assert runtime.requests == [expected]
    await client.close()


async def test_a_higher_attempt_resumes_with_history_and_decisions(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(emit(finished()))
    decisions = [
        ("c1", '{"execute":true}'),
        ("c2", '{"outcome":"succeeded","result_json":"{\\"n\\": 9007199254740993}"}'),
        ("c3", '{"outcome":"not_executed","reason":"DENIED","user_message":"too dear"}'),
    ]
    ref = replace(REF, attempt=3)
    await anext(client.start(replace(CALL, ref=ref, history=HISTORY, resolutions=decisions)))
    request = runtime.requests[0]
    assert isinstance(request, pb.ResumeTurnRequest)
    assert request.turn.attempt == 3
    assert [event.event_id for event in request.history] == ["2-9"]
    go, succeeded, denied = request.resolutions
    assert (go.tool_call_id, go.execute) == ("c1", True)
    assert succeeded.finished.outcome == pb.TOOL_OUTCOME_SUCCEEDED
    assert succeeded.finished.result_json == '{"n": 9007199254740993}'
    assert denied.finished.outcome == pb.TOOL_OUTCOME_NOT_EXECUTED
    assert denied.finished.error.reason == "DENIED"
    assert denied.finished.error.user_message == "too dear"


@pytest.mark.parametrize("decision", ["[]", "no json", "{}", '{"outcome":"perhaps"}'])
async def test_a_decision_that_cannot_be_read_asks_nothing_of_the_runtime(
    runtime: ScriptedRuntime, client: GrpcRuntime, decision: str
) -> None:
    call = replace(CALL, ref=replace(REF, attempt=2), resolutions=[("c1", decision)])
    with pytest.raises(RuntimeEnded, match="history_unreadable"):
        await anext(client.start(call))
    assert runtime.requests == []


async def test_an_ack_opens_the_gate(runtime: ScriptedRuntime, client: GrpcRuntime) -> None:
    runtime.play(emit(tool_started("c1")), wait_for_ack(), emit(tool_finished("c1"), finished()))
    stream = client.start(CALL)
    assert [draft.gated for draft in await anext(stream)] == [True]
    assert await client.ack(REF, 1)
    assert [draft.type for draft in await anext(stream)] == ["tool_end", "done"]


async def test_what_is_told_to_an_attempt_that_is_not_there_is_not_accepted(
    runtime: ScriptedRuntime, client: GrpcRuntime
) -> None:
    runtime.play(emit(tool_started("c1")), hang())
    stream = client.start(CALL)
    await anext(stream)
    other = replace(REF, attempt=2)
    assert not await client.ack(other, 1)
    assert not await client.cancel(other, "stop", grace_seconds=2)
    assert await client.cancel(REF, "stop", grace_seconds=2)
    assert runtime.cancels[-1].reason == "stop"
    assert runtime.cancels[-1].grace_period.seconds == 2
    stream.cancel()


@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_a_lost_connection_is_tried_once_more(
    runtime: ScriptedRuntime, client: GrpcRuntime, failures: int
) -> None:
    runtime.play(emit(tool_started("c1")), hang())
    stream = client.start(CALL)
    await anext(stream)
    runtime.unary_failures = [grpc.StatusCode.UNAVAILABLE] * failures
    assert await client.ack(REF, 1) is (failures < 2)
    assert len(runtime.acks) == min(failures + 1, 2)
    stream.cancel()


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED]
)
async def test_any_other_failure_is_a_no_and_not_tried_again(
    runtime: ScriptedRuntime, client: GrpcRuntime, code: grpc.StatusCode
) -> None:
    runtime.unary_failures = [code]
    assert not await client.ack(REF, 1)
    assert len(runtime.acks) == 1


async def test_a_runtime_describes_itself(client: GrpcRuntime) -> None:
    info = await client.info()
    assert info == RuntimeInfo(
        ("script",), resume_supported=True, checkpoint_modes=info.checkpoint_modes
    )
    assert set(info.checkpoint_modes) <= {"hold", "suspend"}


async def test_a_runtime_that_does_not_describe_itself_is_unavailable(
    runtime: ScriptedRuntime, client: GrpcRuntime, counts: Counts
) -> None:
    runtime.unary_failures = [grpc.StatusCode.CANCELLED]
    with pytest.raises(RuntimeUnavailable, match=r"^CANCELLED$"):
        await client.info()
    nobody = GrpcRuntime("127.0.0.1:1", RuntimeOptions(), counts)
    with pytest.raises(RuntimeUnavailable, match=r"^UNAVAILABLE$"):
        await nobody.info()
    assert not await nobody.ack(AttemptRef("s1", "t1", 1, "u1"), 1)
    await nobody.close()


@pytest.mark.proves("T29")
def test_the_channel_belongs_to_the_loop_that_uses_it(counts: Counts) -> None:
    client = GrpcRuntime("127.0.0.1:1", RuntimeOptions(), counts)

    async def main() -> None:
        with pytest.raises(RuntimeUnavailable):
            await client.info()
        await client.close()

    asyncio.run(main())


@pytest.mark.proves("T23", "T24")
def test_the_channel_probes_a_silent_peer_within_what_a_server_allows() -> None:
    options = dict(CHANNEL_OPTIONS)
    assert len(options) == len(CHANNEL_OPTIONS)
    # agent_runtime allows a ping in 10 s; a peer that is gone is noticed in less than 60 s.
    assert options["grpc.keepalive_time_ms"] >= 2 * 10_000
    for time_out in ("grpc.keepalive_timeout_ms", "grpc.http2.ping_timeout_ms"):
        assert options["grpc.keepalive_time_ms"] + options[time_out] < 60_000
    assert options["grpc.http2.max_pings_without_data"] == 0
    assert options["grpc.keepalive_permit_without_calls"] == 0


def test_the_channel_reads_little_ahead_and_never_replays_a_call() -> None:
    options = dict(CHANNEL_OPTIONS)
    assert options["grpc.http2.bdp_probe"] == 0
    assert options["grpc.http2.lookahead_bytes"] <= 65_536
    assert options["grpc.max_receive_message_length"] == MAX_MESSAGE_BYTES > 2 * MAX_EVENT_BYTES
    assert options["grpc.enable_retries"] == 0
    assert options["grpc.use_local_subchannel_pool"] == 1
