"""Events of a runtime to drafts and back: nothing changed, what is refused, what is skipped."""

from __future__ import annotations

import json

import pytest
from google.protobuf.message import Message
from hypothesis import given
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core import drafts
from edge.core.errors import LogBroken
from edge.core.event import Draft, Event
from edge.upstream.fields import MAX_TOOL_ARGUMENTS_BYTES, EventTooLarge, WireFault
from edge.upstream.wire import MAX_EVENT_BYTES, is_unsupported, to_agent_event, to_draft
from tests.edge.upstream import strategies
from tests.support.scripted_runtime import completed, text, tool_finished, tool_started, wrap


def draft_of(payload: Message, **envelope: int) -> Draft:
    draft = to_draft(wrap(payload, index=7, **envelope), "t1")
    assert draft is not None
    return draft


def journaled(draft: Draft) -> Event:
    return Event(3, 12, draft.type, draft.data, draft.subject, draft.structural, draft.private)


@given(strategies.events())
def test_a_runtime_gets_back_what_it_sent(sent: pb.AgentEvent) -> None:
    draft = to_draft(sent, "t1")
    assert draft is not None
    back = to_agent_event(journaled(draft))
    sent.event_id, sent.index, sent.attempt = "3-12", 0, 0
    sent.ClearField("emit_time")
    assert back == sent


@given(strategies.events())
@pytest.mark.proves("T41")
def test_data_is_one_line_of_ascii_json_that_starts_with_the_turn(sent: pb.AgentEvent) -> None:
    draft = to_draft(sent, "t1")
    assert draft is not None
    assert (draft.data + draft.private).isascii()
    assert draft.data.replace("\x7f", "").isprintable()
    assert next(iter(json.loads(draft.data).items())) == ("turn_id", "t1")


@given(strategies.events())
@pytest.mark.proves("P-EVT-7")
def test_nothing_private_is_in_the_data(sent: pb.AgentEvent) -> None:
    draft = to_draft(sent, "t1")
    assert draft is not None
    public, private = json.loads(draft.data), json.loads(draft.private or "{}")
    assert private.keys() <= {"provider_state", "error_message", "idempotency_key"}
    assert not private.keys() & public.keys()
    assert public.get("error", {}).keys() <= {"reason", "user_message", "retryable"}


@pytest.mark.proves("T28")
def test_json_of_a_tool_travels_as_the_exact_text() -> None:
    arguments = '{"z": 9007199254740993, "a": 1e2, "a": "\\u00e9"}'
    draft = draft_of(tool_started("c1", arguments))
    assert json.loads(draft.data)["arguments_json"] == arguments
    assert to_agent_event(journaled(draft)).tool_call_started.arguments_json == arguments


@given(strategies.events())
@pytest.mark.proves("T28")
def test_every_number_is_one_that_a_browser_reads_exactly(sent: pb.AgentEvent) -> None:
    draft = to_draft(sent, "t1")
    assert draft is not None
    # JavaScript reads every number as a double.
    assert json.loads(draft.data, parse_int=lambda text: int(float(text))) == json.loads(draft.data)


def test_a_count_that_no_browser_could_read_is_told_as_the_largest_that_it_can() -> None:
    used = pb.Usage(input_tokens=2**53 + 1, output_tokens=2**53 - 1)
    draft = draft_of(pb.TurnFinished(outcome=pb.TURN_OUTCOME_COMPLETED, usage=used))
    assert json.loads(draft.data)["usage"] == {
        "input_tokens": 2**53 - 1,
        "output_tokens": 2**53 - 1,
    }


def test_the_subject_is_the_call_else_the_message() -> None:
    assert draft_of(text("m1", "x")).subject == "m1"
    assert draft_of(completed("m1", "x")).subject == "m1"
    started = tool_started("c1")
    started.message_id = "m1"
    assert draft_of(started).subject == "c1"
    assert draft_of(tool_finished("c1")).subject == "c1"
    assert draft_of(pb.StateDelta()).subject == ""


def test_only_a_call_that_waits_is_gated() -> None:
    assert draft_of(tool_started("c1")).gated
    assert not draft_of(tool_started("c1", gated=False)).gated
    assert not draft_of(tool_finished("c1")).gated


def test_a_lying_envelope_does_not_change_the_class_of_a_known_payload() -> None:
    lies = {"delivery_class": pb.DELIVERY_CLASS_COALESCABLE}
    assert draft_of(tool_started("c1"), **lies).structural
    honest = {"delivery_class": pb.DELIVERY_CLASS_STRUCTURAL}
    assert not draft_of(text("m1", "x"), **honest).structural


@pytest.mark.parametrize(
    ("delivery_class", "structural"),
    [
        (pb.DELIVERY_CLASS_UNSPECIFIED, True),
        (pb.DELIVERY_CLASS_STRUCTURAL, True),
        (pb.DELIVERY_CLASS_COALESCABLE, False),
    ],
)
def test_an_applications_own_event_has_its_envelopes_class(
    delivery_class: int, structural: bool
) -> None:
    custom = pb.CustomEvent(name="acme.note", value_json="1")
    assert draft_of(custom, delivery_class=delivery_class).structural is structural


def test_what_the_edge_journals_in_its_own_form_is_passed_over_in_silence() -> None:
    for payload in (pb.TurnStarted(instance_id="i"), pb.Heartbeat()):
        assert to_draft(wrap(payload), "t1") is None
        assert not is_unsupported(wrap(payload))


def test_what_this_edge_does_not_know_is_unsupported() -> None:
    newer = pb.AgentEvent.FromString(b"\x10\x07\x9a\x06\x02\x08\x01")  # index 7, and a field 99
    ephemeral = wrap(pb.CustomEvent(name="acme.ping"), delivery_class=pb.DELIVERY_CLASS_EPHEMERAL)
    for event in (newer, ephemeral):
        assert to_draft(event, "t1") is None
        assert is_unsupported(event)


@pytest.mark.parametrize(
    "payload",
    [
        text("", "x"),
        pb.MessageCompleted(message_id="m1", role=pb.MESSAGE_ROLE_AGENT),
        pb.MessageCompleted(message_id="m1", status=pb.MESSAGE_STATUS_COMPLETE),
        tool_started(""),
        pb.ToolCallFinished(tool_call_id="c1"),
        pb.StateDelta(changes=[pb.StateChange(key="a")]),
        pb.ErrorReported(),
        pb.TurnSuspended(),
        pb.TurnFinished(),
        pb.MessageCompleted(
            message_id="m1",
            role=pb.MESSAGE_ROLE_AGENT,
            status=pb.MESSAGE_STATUS_COMPLETE,
            parts=[pb.ContentPart()],
        ),
    ],
)
def test_what_no_correct_runtime_sends_is_refused(payload: Message) -> None:
    with pytest.raises(WireFault) as refused:
        to_draft(wrap(payload), "t1")
    assert refused.value.reason == "runtime_protocol_error"


@pytest.mark.parametrize(
    "payload",
    [
        text("m1", "x" * MAX_EVENT_BYTES),
        text("m1", "\u00e9" * (MAX_EVENT_BYTES // 6)),
        tool_finished("c1", "x" * MAX_EVENT_BYTES),
        tool_started("c1", "\u00e9" * (MAX_TOOL_ARGUMENTS_BYTES // 2 + 1)),
        pb.MessageCompleted(
            message_id="m1",
            role=pb.MESSAGE_ROLE_AGENT,
            status=pb.MESSAGE_STATUS_COMPLETE,
            provider_state=b"x" * MAX_EVENT_BYTES,
        ),
    ],
)
def test_a_huge_event_is_refused_by_size_and_limit_without_its_content(payload: Message) -> None:
    with pytest.raises(EventTooLarge, match=r"^\w+: \d+ bytes, limit \d+$") as refused:
        to_draft(wrap(payload), "t1")
    assert refused.value.reason == "event_too_large"


def test_the_largest_events_are_taken() -> None:
    room = MAX_EVENT_BYTES - len(draft_of(text("m1", "")).data)
    assert len(draft_of(text("m1", "x" * room)).data) == MAX_EVENT_BYTES
    draft_of(tool_started("c1", "x" * MAX_TOOL_ARGUMENTS_BYTES))


def test_the_edges_own_events_can_be_given_to_a_runtime() -> None:
    said = {"type": "text", "text": "Hi"}
    policy = {"on_disconnect": "continue"}
    start = to_agent_event(
        journaled(drafts.turn_start("t1", "a", attempt=2, user_input=[said], policy=policy))
    )
    assert (start.attempt, start.turn_started.input[0].text) == (2, "Hi")
    cut = to_agent_event(
        journaled(drafts.message_cut_short("t1", "m1", [("token", '{"text":"H"}')]))
    )
    assert cut.message_completed.status == pb.MESSAGE_STATUS_INCOMPLETE
    end = to_agent_event(journaled(drafts.tool_end("t1", "c1", "unknown", "OUTCOME_UNKNOWN")))
    assert end.tool_call_finished.error.reason == "OUTCOME_UNKNOWN"
    stop = to_agent_event(journaled(drafts.cancelled("t1")))
    assert stop.turn_finished.outcome == pb.TURN_OUTCOME_CANCELLED
    failure = to_agent_event(journaled(drafts.failed("t1", "runtime_timeout", retryable=True)))
    assert failure.turn_finished.outcome == pb.TURN_OUTCOME_FAILED
    assert failure.turn_finished.error.reason == "runtime_timeout"


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        ("of_a_newer_edge", "{}"),
        ("tool_start", "no json"),
        ("tool_end", '{"call_id":"c1","outcome":"secret"}'),
        ("turn_start", '{"turn_id":"t1"}'),
        ("message", '{"message_id":7}'),
        ("custom", "[]"),
    ],
)
def test_a_journal_that_cannot_be_read_back_is_told_without_its_content(
    type_: str, data: str
) -> None:
    with pytest.raises(LogBroken) as broken:
        to_agent_event(Event(3, 12, type_, data))
    assert str(broken.value) == "event 3-12 cannot be read back"
    assert broken.value.__suppress_context__
