"""The chat adapter against a real HTTP server, with the real client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import Tool, tool
from agent_runtime.adapters.openai_compatible import ChatAgent, from_environment
from tests.agent_runtime.harness import (
    SUSPEND,
    RuntimeUnderTest,
    ends,
    kind_of,
    serving,
    texts,
)
from tests.agent_runtime.model_server import (
    CUT,
    Answer,
    ModelServer,
    call_part,
    chunk,
    end,
    model_server,
    said,
    usage,
)

TWO_CALLS = Answer(
    said("Let me look."),
    call_part(0, '{"city": "Os', name="weather", call_id="a"),
    call_part(1, '{"city"', name="weather", call_id="b"),
    call_part(0, 'lo"}'),
    call_part(1, ': "Rome"}'),
    end("tool_calls"),
    usage(10, 5),
)
DONE = Answer(said("It is "), said("fine."), end(), usage(20, 3))


class Weather:
    """A tool that remembers what it was asked."""

    def __init__(self, *, safety: str = "read_only") -> None:
        self.asked: list[str] = []

        @tool(name="weather", replay_safety=safety)
        async def weather(city: str) -> str:
            """Tell the weather."""
            self.asked.append(city)
            return f"sun in {city}"

        self.tool: Tool = weather


@asynccontextmanager
async def chatting(
    weather: Weather, *answers: Answer
) -> AsyncIterator[tuple[ModelServer, RuntimeUnderTest]]:
    async with (
        model_server(*answers) as model,
        openai.AsyncOpenAI(api_key="k", base_url=model.url, max_retries=0) as client,
    ):
        chat = ChatAgent(client, "m", tools=[weather.tool], system="Be brief.", retry_seconds=0)
        async with serving(chat.as_agent()) as runtime:
            yield model, runtime


async def test_the_loop_runs_the_tools_of_an_answer_and_asks_again() -> None:
    weather = Weather()
    async with chatting(weather, TWO_CALLS, DONE) as (model, runtime):
        events = await runtime.turn("weather?").start().run()
    assert texts(events) == ["Let me look.", "It is fine."]
    assert sorted(weather.asked) == ["Oslo", "Rome"]
    first, second = model.requests
    assert first["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "weather?"},
    ]
    assert first["tools"][0]["function"]["name"] == "weather"
    called, *results = second["messages"][2:]
    assert [call["id"] for call in called["tool_calls"]] == ["a", "b"]
    assert [(r["tool_call_id"], r["content"]) for r in results] == [
        ("a", '"sun in Oslo"'),
        ("b", '"sun in Rome"'),
    ]
    used = events[-1].turn_finished.usage
    assert (used.input_tokens, used.output_tokens, used.model_calls) == (30, 8, 2)
    started = [event.tool_call_started for event in events if kind_of(event) == "tool_call_started"]
    assert {call.message_id for call in started} == {"m1"}


async def test_a_replay_asks_the_model_nothing_again() -> None:
    weather = Weather(safety="unsafe")
    async with chatting(weather, TWO_CALLS, DONE) as (model, runtime):
        turn = runtime.turn("weather?", mode=SUSPEND).start()
        await turn.rest()
        assert len(model.requests) == 1
        assert texts(await turn.resume().rest()) == ["It is fine."]
    assert len(model.requests) == 2
    assert sorted(weather.asked) == ["Oslo", "Rome"]


async def test_a_call_that_was_lost_with_a_crash_is_made_from_the_recorded_answer() -> None:
    weather = Weather()
    async with chatting(weather, TWO_CALLS, DONE) as (model, runtime):
        turn = runtime.turn("weather?", mode=SUSPEND).start()
        await turn.rest()
        turn.forget_after("tool_call_started", 1)
        await turn.resume().rest()
        assert turn.kinds.count("tool_call_started") == 1
        await turn.resume().rest()
    assert len(model.requests) == 2
    assert set(weather.asked) == {"Oslo", "Rome"}


@pytest.mark.proves("S39")
@pytest.mark.parametrize("broken_by", [CUT, "nothing more"])
async def test_arguments_cut_off_never_run_and_the_answer_is_asked_for_anew(broken_by: str) -> None:
    weather = Weather()
    half = [said("Let me"), call_part(0, '{"city": "Oslo"}', name="weather", call_id="a")]
    cut = Answer(*half, CUT) if broken_by is CUT else Answer(*half)
    async with chatting(weather, cut, DONE) as (model, runtime):
        events = await runtime.turn("weather?").start().run()
    assert weather.asked == []
    assert len(model.requests) == 2
    assert not ends(events)
    assert texts(events) == ["", "It is fine."]


@pytest.mark.proves("S32")
async def test_a_try_that_broke_off_is_withdrawn_before_the_next_one_speaks() -> None:
    weather = Weather()
    cut = Answer(said("Half an ans"), CUT)
    async with chatting(weather, cut, DONE) as (model, runtime):
        turn = runtime.turn("weather?").start()
        events = await turn.run()
        kinds = [kind for kind in turn.kinds if kind != "text_delta"]
        assert kinds == [
            "turn_started",
            "message_completed",
            "error_reported",
            "message_completed",
            "turn_finished",
        ]
        messages = [e.message_completed for e in events if kind_of(e) == "message_completed"]
        assert [message.status for message in messages] == [
            pb.MESSAGE_STATUS_DISCARDED,
            pb.MESSAGE_STATUS_COMPLETE,
        ]
        # The failed try is part of the journal, and a replay passes over it.
        turn.forget_after("message_completed", 2)
        assert texts(await turn.resume().rest()) == []
    assert len(model.requests) == 2


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_model_is_asked_again_a_few_times(status: int) -> None:
    busy = Answer(status=status)
    async with chatting(Weather(), busy, busy, DONE) as (_, runtime):
        events = await runtime.turn().start().run()
    assert texts(events)[-1] == "It is fine."
    async with chatting(Weather(), busy, busy, busy) as (model, runtime):
        events = await runtime.turn().start().run()
    error = events[-1].turn_finished.error
    assert (error.reason, error.retryable) == ("MODEL_UNAVAILABLE", True)
    # Nobody is told of another try after the last one.
    assert [kind_of(event) for event in events].count("error_reported") == len(model.requests) - 1
    assert len(model.requests) == 3


async def test_a_refused_request_fails_the_turn_without_quoting_the_answer() -> None:
    async with chatting(Weather(), Answer(status=400)) as (model, runtime):
        events = await runtime.turn().start().run()
    assert events[-1].turn_finished.error.reason == "MODEL_ERROR"
    assert len(model.requests) == 1
    assert not any("quoting" in str(event) for event in events)


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("length", pb.TURN_OUTCOME_LIMIT_REACHED),
        ("content_filter", pb.TURN_OUTCOME_FAILED),
    ],
)
async def test_an_answer_that_is_not_whole_uses_none_of_its_calls(
    reason: str, outcome: pb.TurnOutcome.ValueType
) -> None:
    weather = Weather()
    half = call_part(0, '{"city": "Oslo"}', name="weather", call_id="a")
    async with chatting(weather, Answer(said("So"), half, end(reason))) as (_, runtime):
        events = await runtime.turn().start().run()
    assert events[-1].turn_finished.outcome == outcome
    assert weather.asked == []


async def test_the_model_is_told_what_was_wrong_with_its_calls() -> None:
    odd = Answer(
        call_part(0, "{not json", name="weather", call_id="a"),
        call_part(1, '{"town": "Oslo"}', name="weather", call_id="b"),
        call_part(2, "{}", name="imagined", call_id="c"),
        end("tool_calls"),
    )
    weather = Weather()
    async with chatting(weather, odd, DONE) as (model, runtime):
        await runtime.turn().start().run()
    told = [m["content"] for m in model.requests[1]["messages"] if m["role"] == "tool"]
    assert "not a JSON object" in told[0]
    assert "city is missing" in told[1]
    assert "UNKNOWN_TOOL" in told[2]
    assert weather.asked == []


async def test_the_bound_on_model_calls_holds() -> None:
    looping = [
        Answer(call_part(0, '{"city": "X"}', name="weather", call_id="a"), end("tool_calls"))
    ] * 3
    async with chatting(Weather(), *looping) as (model, runtime):
        events = await runtime.turn(max_model_calls=2).start().run()
    assert events[-1].turn_finished.limit == pb.TURN_LIMIT_MODEL_CALLS
    assert len(model.requests) == 2


async def test_the_history_becomes_a_prompt_in_which_every_call_has_its_result() -> None:
    async with chatting(Weather(), TWO_CALLS, DONE, DONE) as (model, runtime):
        first = runtime.turn("weather?").start()
        await first.run()
        await runtime.turn("thanks", history=first.history).start().run()
    roles = [message["role"] for message in model.requests[2]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    called = model.requests[2]["messages"][2]
    results = model.requests[2]["messages"][3:5]
    assert called["content"] == "Let me look."
    assert [c["id"] for c in called["tool_calls"]] == [r["tool_call_id"] for r in results]


async def test_reasoning_is_disclosed_where_a_server_sends_it() -> None:
    thinking = Answer(chunk({"reasoning_content": "hm"}), said("yes"), end())
    async with chatting(Weather(), thinking) as (_, runtime):
        events = await runtime.turn().start().run()
    assert [e.message_completed.reasoning for e in events if kind_of(e) == "message_completed"] == [
        "hm"
    ]


def test_the_environment_must_name_a_model_and_tools_that_exist() -> None:
    with pytest.raises(ValueError, match="OPENAI_MODEL"):
        from_environment({})
    with pytest.raises(ValueError, match="OPENAI_TOOLS"):
        from_environment({"OPENAI_MODEL": "m", "OPENAI_TOOLS": "agent_runtime.demo:echo"})
    assert from_environment({"OPENAI_MODEL": "m"}).name == "chat"
