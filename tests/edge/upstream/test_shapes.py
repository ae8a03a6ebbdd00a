"""The exact JSON of every kind of event: PROTOCOL.md, section "Events"."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.upstream.wire import to_draft
from tests.support.scripted_runtime import wrap

ERROR = pb.ErrorInfo(reason="QUOTA", message="secret", user_message="Later.", retryable=True)
PARTS = [
    pb.ContentPart(text="H\u00e9\n"),
    pb.ContentPart(file=pb.FileRef(uri="gs://a", media_type="image/png", display_name="a.png")),
    pb.ContentPart(file=pb.FileRef(uri="gs://b", media_type="image/png")),
    pb.ContentPart(data_json='{"b": 9007199254740993}'),
]

SHAPES: list[tuple[Message, str, str, str]] = [
    (
        pb.TextDelta(message_id="m1", text="H\u00e9\r\n\u2028"),
        "token",
        r'"message_id":"m1","text":"H\u00e9\r\n\u2028"',
        "",
    ),
    (
        pb.ReasoningDelta(message_id="m1", text="so"),
        "reasoning",
        '"message_id":"m1","text":"so"',
        "",
    ),
    (
        pb.MessageCompleted(
            message_id="m1",
            role=pb.MESSAGE_ROLE_AGENT,
            parts=PARTS,
            reasoning="so",
            status=pb.MESSAGE_STATUS_INCOMPLETE,
            usage=pb.Usage(input_tokens=3, model_calls=1),
            provider_state=b"\x00\xff",
        ),
        "message",
        r'"message_id":"m1","role":"agent","parts":[{"type":"text","text":"H\u00e9\n"},'
        '{"type":"file","uri":"gs://a","media_type":"image/png","name":"a.png"},'
        '{"type":"file","uri":"gs://b","media_type":"image/png"},'
        r'{"type":"data","data_json":"{\"b\": 9007199254740993}"}],'
        '"reasoning":"so","status":"incomplete","usage":{"input_tokens":3,"model_calls":1}',
        '{"provider_state":"AP8="}',
    ),
    (
        pb.ToolCallStarted(
            tool_call_id="c1",
            tool_name="pay",
            arguments_json='{"id": 9007199254740993}',
            message_id="m1",
            replay_safety=pb.REPLAY_SAFETY_IDEMPOTENT,
            idempotency_key="k",
            executor=pb.TOOL_EXECUTOR_PROVIDER,
            checkpoint_required=True,
        ),
        "tool_start",
        r'"call_id":"c1","name":"pay","arguments_json":"{\"id\": 9007199254740993}",'
        '"message_id":"m1","replay_safety":"idempotent","executor":"provider",'
        '"checkpoint_required":true',
        '{"idempotency_key":"k"}',
    ),
    (
        pb.ToolCallStarted(tool_call_id="c1", tool_name="pay", arguments_json="{}"),
        "tool_start",
        '"call_id":"c1","name":"pay","arguments_json":"{}",'
        '"replay_safety":"unsafe","executor":"runtime","checkpoint_required":false',
        "",
    ),
    (
        pb.ToolCallProgress(
            tool_call_id="c1", message="half", fraction=0.5, preliminary_result_json="[1]"
        ),
        "tool_progress",
        '"call_id":"c1","message":"half","fraction":0.5,"preliminary_result_json":"[1]"',
        "",
    ),
    (
        pb.ToolCallProgress(tool_call_id="c1", message="?", fraction=float("nan")),
        "tool_progress",
        '"call_id":"c1","message":"?"',
        "",
    ),
    (
        pb.ToolCallFinished(
            tool_call_id="c1",
            outcome=pb.TOOL_OUTCOME_SUCCEEDED,
            result_json="[]",
            run_duration=Duration(seconds=1, nanos=2_999_999),
        ),
        "tool_end",
        '"call_id":"c1","outcome":"succeeded","result_json":"[]","duration_ms":1002',
        "",
    ),
    (
        pb.ToolCallFinished(tool_call_id="c1", outcome=pb.TOOL_OUTCOME_NOT_EXECUTED, error=ERROR),
        "tool_end",
        '"call_id":"c1","outcome":"not_executed",'
        '"error":{"reason":"QUOTA","user_message":"Later.","retryable":true}',
        '{"error_message":"secret"}',
    ),
    (
        pb.StateDelta(
            changes=[
                pb.StateChange(key="a", value_json="[1]"),
                pb.StateChange(key="b", removed=True),
            ]
        ),
        "state",
        '"changes":[{"key":"a","value_json":"[1]"},{"key":"b","removed":true}]',
        "",
    ),
    (
        pb.ErrorReported(error=ERROR, message_id="m1", tool_call_id="c1"),
        "notice",
        '"error":{"reason":"QUOTA","user_message":"Later.","retryable":true},'
        '"message_id":"m1","call_id":"c1"',
        '{"error_message":"secret"}',
    ),
    (
        pb.TurnSuspended(
            reason=pb.SUSPEND_REASON_INPUT_REQUIRED,
            pending_tool_call_ids=["c1", "c2"],
            prompt="Sure?",
            response_schema_json="{}",
        ),
        "suspended",
        '"reason":"input_required","pending_call_ids":["c1","c2"],"prompt":"Sure?",'
        '"response_schema_json":"{}"',
        "",
    ),
    (
        pb.TurnSuspended(reason=pb.SUSPEND_REASON_DRAINING),
        "suspended",
        '"reason":"draining","pending_call_ids":[]',
        "",
    ),
    (
        pb.CustomEvent(name="acme.citation", value_json="1"),
        "custom",
        '"name":"acme.citation","value_json":"1"',
        "",
    ),
    (
        pb.TurnFinished(
            outcome=pb.TURN_OUTCOME_LIMIT_REACHED,
            limit=pb.TURN_LIMIT_TOKENS,
            final_message_id="m1",
            usage=pb.Usage(output_tokens=9),
            error=ERROR,
        ),
        "done",
        '"outcome":"limit","limit":"tokens","final_message_id":"m1","usage":{"output_tokens":9},'
        '"error":{"reason":"QUOTA","user_message":"Later.","retryable":true}',
        '{"error_message":"secret"}',
    ),
    (
        pb.TurnFinished(outcome=pb.TURN_OUTCOME_COMPLETED, usage=pb.Usage()),
        "done",
        '"outcome":"completed"',
        "",
    ),
    (
        pb.TurnFinished(outcome=pb.TURN_OUTCOME_FAILED, error=ERROR, usage=pb.Usage(model_calls=2)),
        "error",
        '"code":"QUOTA","retryable":true,"user_message":"Later.","usage":{"model_calls":2}',
        '{"error_message":"secret"}',
    ),
]


@pytest.mark.parametrize(("payload", "type_", "data", "private"), SHAPES)
def test_a_payload_has_this_json(payload: Message, type_: str, data: str, private: str) -> None:
    draft = to_draft(wrap(payload, index=7), "t1")
    assert draft is not None
    assert (draft.type, draft.private, draft.index) == (type_, private, 7)
    assert draft.data == '{"turn_id":"t1",' + data + "}"


@pytest.mark.parametrize(("payload", "type_", "data", "private"), SHAPES)
def test_where_an_event_arose_comes_last(
    payload: Message, type_: str, data: str, private: str
) -> None:
    origin = wrap(payload, author="\u00e9", parent_tool_call_id="c0")
    draft = to_draft(origin, "t1")
    assert draft is not None
    tail = r',"author":"\u00e9","parent_call_id":"c0"}'
    assert draft.data == '{"turn_id":"t1",' + data + tail
