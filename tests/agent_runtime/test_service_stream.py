"""The stream: order, packing, one terminal event, limits, back-pressure, and what a failure says."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import ToolContext, ToolFailed, TurnContext, TurnFailed, agent, tool
from agent_runtime.__main__ import PlainFormatter
from agent_runtime.errors import ModelCallLimitReached
from agent_runtime.events import Usage
from tests.agent_runtime.harness import ends, kind_of, serving, settle, texts

EMOJI = "\N{GRINNING FACE}"


@agent(name="plain")
async def plain(ctx: TurnContext) -> None:
    async with ctx.message() as message:
        for word in ("Hel", "lo ", ctx.input_text):
            await message.say(word)
    await ctx.reason("done, then")


@pytest.mark.proves("P-RUN-1")
async def test_events_of_an_attempt_are_numbered_from_one_without_a_gap() -> None:
    async with serving(plain) as runtime:
        events = await runtime.turn("you").start().rest()
    assert [event.index for event in events] == list(range(1, len(events) + 1))
    assert len({event.event_id for event in events}) == len(events)
    assert {event.attempt for event in events} == {1}
    assert {event.author for event in events} == {"plain"}
    assert {event.emit_time.ToNanoseconds() for event in events} == {1_800_000_000_250_000_000}
    assert events[0].turn_started.instance_id == "instance"


async def test_every_event_says_how_it_must_be_treated() -> None:
    async with serving(plain) as runtime:
        events = await runtime.turn("you").start().rest()
    deltas = [event for event in events if kind_of(event) in ("text_delta", "reasoning_delta")]
    others = [event for event in events if event not in deltas]
    assert {event.delivery_class for event in deltas} == {pb.DELIVERY_CLASS_COALESCABLE}
    assert {event.delivery_class for event in others} == {pb.DELIVERY_CLASS_STRUCTURAL}


@pytest.mark.proves("P-EVT-2")
async def test_a_completed_message_restates_its_deltas() -> None:
    async with serving(plain) as runtime:
        events = await runtime.turn("you").start().rest()
    said = "".join(event.text_delta.text for event in events if kind_of(event) == "text_delta")
    assert texts(events) == [said, ""] == ["Hello you", ""]
    completed = [event.message_completed for event in events if event.HasField("message_completed")]
    assert {message.status for message in completed} == {pb.MESSAGE_STATUS_COMPLETE}
    assert completed[1].reasoning == "done, then"
    assert events[-1].turn_finished.outcome == pb.TURN_OUTCOME_COMPLETED
    assert events[-1].turn_finished.final_message_id == "m1"


@pytest.mark.proves("P-RUN-9")
async def test_events_that_are_ready_together_travel_together() -> None:
    @agent()
    async def burst(ctx: TurnContext) -> None:
        async with ctx.message() as message:
            for number in range(500):
                await message.say(f"{number} ")

    async with serving(burst) as runtime:
        turn = runtime.turn().start()
        assert len(await turn.rest()) == 503
        assert len(turn.packs) < 20


async def test_a_failing_agent_ends_the_turn_and_its_words_stay_out_of_events_and_logs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @agent()
    async def failing(ctx: TurnContext) -> None:
        async with ctx.message() as message:
            await message.say("so far")
            raise ValueError(f"cannot digest {ctx.input_text}")

    async with serving(failing) as runtime:
        with caplog.at_level(logging.DEBUG):
            events = await runtime.turn("s3cret").start().rest()
    finished = events[-1].turn_finished
    assert (finished.outcome, finished.error.reason) == (pb.TURN_OUTCOME_FAILED, "AGENT_ERROR")
    assert finished.error.message == "ValueError"
    assert events[-2].message_completed.status == pb.MESSAGE_STATUS_INCOMPLETE
    assert texts(events) == ["so far"]
    log = "\n".join(PlainFormatter().format(record) for record in caplog.records)
    assert "ValueError at " in log
    assert "s3cret" not in log + str(events)


async def test_an_agent_may_say_why_its_turn_fails() -> None:
    @agent()
    async def refusing(ctx: TurnContext) -> None:
        raise TurnFailed("NO_QUOTA", user_message="Try again tomorrow.", retryable=True)

    async with serving(refusing) as runtime:
        error = (await runtime.turn().start().rest())[-1].turn_finished.error
    assert (error.reason, error.user_message, error.retryable) == (
        "NO_QUOTA",
        "Try again tomorrow.",
        True,
    )


@pytest.mark.proves("P-RUN-1", "P-RUN-12")
async def test_silence_is_broken_by_heartbeats_that_repeat_the_last_index() -> None:
    go = asyncio.Event()

    @tool(replay_safety="read_only")
    async def wait() -> None:
        await go.wait()

    @agent(tools=[wait])
    async def waiter(ctx: TurnContext) -> None:
        await ctx.call_tool(wait, {})

    async with serving(waiter) as runtime:
        turn = runtime.turn(heartbeat_seconds=0.05).start()
        started = await turn.until("tool_call_started")
        await turn.ack(started.index)
        beat = await turn.until("heartbeat", 2)
        assert beat.index == started.index
        assert beat.delivery_class == pb.DELIVERY_CLASS_EPHEMERAL
        assert list(beat.heartbeat.running_tool_call_ids) == ["c1"]
        go.set()
        events = [event for event in await turn.rest() if kind_of(event) != "heartbeat"]
    assert [event.index for event in events] == [1, 2, 3, 4]


async def test_progress_of_a_tool_reaches_the_stream_from_loop_and_thread() -> None:
    @tool(replay_safety="read_only", name="loop")
    async def in_loop(ctx: ToolContext) -> None:
        ctx.progress("half", 0.5)
        await asyncio.sleep(0)

    @tool(replay_safety="read_only", name="thread")
    def in_thread(ctx: ToolContext) -> None:
        ctx.progress("more than all", 7)

    @agent(tools=[in_loop, in_thread])
    async def caller(ctx: TurnContext) -> None:
        await ctx.call_tool("loop", {})
        await ctx.call_tool("thread", {})

    async with serving(caller) as runtime:
        events = await runtime.turn().start().run()
    progress = [e.tool_call_progress for e in events if kind_of(e) == "tool_call_progress"]
    assert [(p.tool_call_id, p.message, p.fraction) for p in progress] == [
        ("c1", "half", 0.5),
        ("c2", "more than all", 1.0),
    ]


async def test_large_text_is_cut_into_deltas_that_never_split_a_character() -> None:
    text = EMOJI * 20_000

    @agent()
    async def loud(ctx: TurnContext) -> None:
        await ctx.say(text)

    async with serving(loud) as runtime:
        events = await runtime.turn().start().rest()
    assert texts(events) == [text]
    deltas = [event for event in events if kind_of(event) == "text_delta"]
    assert "".join(event.text_delta.text for event in deltas) == text
    assert max(event.ByteSize() for event in deltas) < 64 * 1024


async def test_lone_surrogates_are_replaced_and_pairs_are_joined() -> None:
    @tool(replay_safety="read_only")
    async def odd() -> str:
        return "\udc00"

    @agent(tools=[odd])
    async def odd_speaker(ctx: TurnContext) -> None:
        await ctx.say("a\ud800b \ud83d\ude00")
        await ctx.call_tool(odd, {})

    async with serving(odd_speaker) as runtime:
        events = await runtime.turn().start().run()
    assert texts(events) == [f"a\N{REPLACEMENT CHARACTER}b {EMOJI}"]
    assert ends(events) == {"c1": "SUCCEEDED"}


async def test_a_message_that_no_event_can_hold_fails_where_it_is_written() -> None:
    @agent()
    async def endless(ctx: TurnContext) -> None:
        async with ctx.message() as message:
            while True:
                await message.say("x" * 10_000)

    async with serving(endless) as runtime:
        events = await runtime.turn().start().rest()
    assert events[-1].turn_finished.error.message == "TooLarge"
    assert events[-2].message_completed.status == pb.MESSAGE_STATUS_INCOMPLETE
    assert max(event.ByteSize() for event in events) < 256 * 1024


async def test_a_large_result_is_replaced_by_a_marker_live_and_in_a_replay() -> None:
    seen: list[object] = []

    @tool(replay_safety="read_only")
    async def dump() -> str:
        return "x" * 300_000

    @agent(tools=[dump])
    async def dumper(ctx: TurnContext) -> None:
        seen.append(await ctx.call_tool(dump, {}))
        await ctx.ask("more?")

    async with serving(dumper) as runtime:
        turn = runtime.turn().start()
        await turn.run()
        await turn.resume(answer="no").rest()
    assert seen[0] == seen[1]
    assert isinstance(seen[0], dict)
    assert (seen[0]["truncated"], seen[0]["bytes"], len(seen[0]["preview"])) == (
        True,
        300_002,
        1024,
    )


async def test_arguments_that_do_not_fit_are_refused_before_the_body_runs() -> None:
    @tool()
    async def exact(text: str, times: int = 1) -> None:
        raise AssertionError("must not run")

    cases: list[tuple[dict[str, object], str]] = [
        ({"text": "x" * 70_000}, "TOOL_ARGS_TOO_LARGE"),
        ({"text": 1}, "INVALID_ARGUMENTS"),
        ({}, "INVALID_ARGUMENTS"),
        ({"text": "a", "other": 1}, "INVALID_ARGUMENTS"),
    ]
    reasons = []

    @agent(tools=[exact])
    async def careless(ctx: TurnContext) -> None:
        for arguments, _ in cases:
            try:
                await ctx.call_tool(exact, arguments)
            except ToolFailed as failure:
                reasons.append(failure.reason)
        try:
            await ctx.call_tool("imagined", {})
        except ToolFailed as failure:
            reasons.append(failure.reason)

    async with serving(careless) as runtime:
        events = await runtime.turn().start().rest()
    assert reasons == [*(reason for _, reason in cases), "UNKNOWN_TOOL"]
    assert set(ends(events).values()) == {"NOT_EXECUTED"}
    started = [event.tool_call_started for event in events if kind_of(event) == "tool_call_started"]
    assert not any(call.checkpoint_required for call in started)
    assert json.loads(started[0].arguments_json)["truncated"] is True
    assert max(event.ByteSize() for event in events) < 4096


@pytest.mark.proves("P-RUN-9")
async def test_an_edge_that_reads_slowly_makes_the_agent_wait_in_bounded_memory() -> None:
    said = 0

    @agent()
    async def flood(ctx: TurnContext) -> None:
        nonlocal said
        for _ in range(200):
            async with ctx.message() as message:
                for _ in range(10):
                    await message.say("x" * 10_000)
                    said += 10_000

    async with serving(flood) as runtime:
        turn = runtime.turn().start()
        await turn.until("text_delta")
        attempt = next(iter(runtime.service._attempts.values()))
        await settle(lambda: attempt.outbox.full)
        assert attempt.outbox._weight < 512 * 1024
        assert said < 20_000_000
        events = await turn.rest()
    assert said == 20_000_000
    assert events[-1].turn_finished.outcome == pb.TURN_OUTCOME_COMPLETED


async def test_the_limit_of_model_calls_ends_the_turn_across_attempts() -> None:
    @agent()
    async def caller(ctx: TurnContext) -> None:
        while True:
            async with ctx.message() as message:
                if message.recorded is None:
                    try:
                        ctx.begin_model_call()
                    except ModelCallLimitReached:
                        await asyncio.Event().wait()
                    message.usage = Usage(model_calls=1, input_tokens=10)
                    await message.say("answer")
            if message.message_id == "m2":
                await ctx.ask("go on?")

    async with serving(caller) as runtime:
        turn = runtime.turn(max_model_calls=3).start()
        await turn.rest()
        events = await turn.resume(answer="yes").rest()
    finished = events[-1].turn_finished
    assert finished.outcome == pb.TURN_OUTCOME_LIMIT_REACHED
    assert finished.limit == pb.TURN_LIMIT_MODEL_CALLS
    assert (finished.usage.model_calls, finished.usage.input_tokens) == (3, 30)
    assert texts(events) == ["answer", ""]
