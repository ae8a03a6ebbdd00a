"""The small parts: outbox, fence, limits, loading of agents."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_runtime import TurnContext, agent, tool
from agent_runtime.agent import Agent, AgentLoadError, as_agent, load_agents
from agent_runtime.events import Event, TextDelta, TurnRef, TurnStarted
from agent_runtime.fence import Fence, Verdict
from agent_runtime.limits import (
    MAX_DELTA_CHARACTERS,
    TooLarge,
    bounded_json,
    clean_text,
    result_fits,
    split_text,
    truncation_marker,
)
from agent_runtime.outbox import Emitter, Outbox
from tests.support.virtual_loop import run_virtual

TURN = ("s", "t")


def delta(text: str) -> Event:
    return Event(payload=TextDelta("m1", text), attempt=1)


def test_a_full_outbox_makes_its_writer_wait_for_the_reader() -> None:
    async def main() -> None:
        outbox = Outbox(max_events=2)
        outbox.put(delta("a"))
        outbox.put(delta("b"))
        waiting = asyncio.create_task(outbox.room())
        await asyncio.sleep(1)
        assert not waiting.done()
        assert len(await outbox.next_pack()) == 2
        await waiting

    run_virtual(main())


def test_a_pack_is_bounded_but_never_empty() -> None:
    async def main() -> None:
        outbox = Outbox()
        for size in (300_000, 100_000, 100_000, 100_000):
            outbox.put(delta("x" * size))
        sizes = []
        outbox.close()
        while pack := await outbox.next_pack():
            sizes.append([len(event.payload.text) for event in pack])  # type: ignore[attr-defined]
        assert sizes == [[300_000], [100_000, 100_000], [100_000]]
        assert await outbox.next_pack() == []

    run_virtual(main())


def test_closing_wakes_everybody_and_drops_what_comes_later() -> None:
    async def main() -> None:
        outbox = Outbox(max_events=1)
        outbox.put(delta("a"))
        writer = asyncio.create_task(outbox.room())
        await asyncio.sleep(0)
        outbox.close()
        outbox.put(delta("late"))
        await writer
        assert len(await outbox.next_pack()) == 1
        assert await outbox.next_pack() == []

    run_virtual(main())


def test_a_heartbeat_repeats_what_was_read_and_not_what_waits() -> None:
    async def main() -> None:
        outbox = Outbox()
        emitter = Emitter(TurnRef("s", "t", 1), outbox, author="a", wall_clock=lambda: 0.0)
        emitter.emit(TurnStarted())
        await outbox.next_pack()
        emitter.emit(TurnStarted())
        assert emitter.heartbeat(()).index == 1
        emitter.seal(TurnStarted())
        assert emitter.emit(TurnStarted()) == 3

    run_virtual(main())


def test_only_a_higher_attempt_passes_the_fence() -> None:
    fence = Fence()
    assert fence.admit(TURN, 1, running=0, now=0) is Verdict.ADMITTED
    assert fence.admit(TURN, 1, running=1, now=0) is Verdict.RUNNING_HERE
    assert fence.admit(TURN, 1, running=0, now=0) is Verdict.STALE
    assert fence.admit(TURN, 4, running=1, now=0) is Verdict.ADMITTED
    assert fence.admit(TURN, 3, running=4, now=0) is Verdict.STALE
    assert fence.admit(("s", "other"), 1, running=0, now=0) is Verdict.ADMITTED


def test_the_fence_forgets_what_is_old_or_too_much_but_never_what_runs() -> None:
    fence = Fence(capacity=2, ttl_seconds=100)
    for number in range(4):
        fence.admit(("s", str(number)), 5, running=0, now=number)
    assert fence.admit(("s", "3"), 5, running=0, now=4) is Verdict.STALE
    assert fence.admit(("s", "0"), 4, running=5, now=4) is Verdict.STALE
    assert fence.admit(("s", "3"), 5, running=0, now=200) is Verdict.ADMITTED


@given(st.text(alphabet=st.characters(codec=None), max_size=50))
def test_clean_text_can_always_be_sent_and_keeps_what_could(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode()
    assert clean_text(cleaned) == cleaned
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert cleaned == text


def test_split_text_is_whole_again_when_joined() -> None:
    text = "\N{GRINNING FACE}" * (MAX_DELTA_CHARACTERS + 1)
    pieces = list(split_text(text))
    assert len(pieces) == 2
    assert "".join(pieces) == text
    assert list(split_text("")) == []


def test_a_result_is_measured_as_the_edge_will_journal_it() -> None:
    assert result_fits("x" * 250_000)
    assert not result_fits("x" * 260_000)
    assert not result_fits("é" * 50_000)
    assert not result_fits('"' * 150_000)


def test_values_are_bounded_and_markers_are_small() -> None:
    with pytest.raises(TooLarge):
        bounded_json("x" * 70_000, what="value")
    with pytest.raises(ValueError, match="JSON compliant"):
        bounded_json(float("nan"), what="value")
    assert len(truncation_marker("é" * 1_000_000).encode()) < 1400


def test_an_author_may_write_a_function_or_a_class() -> None:
    @tool()
    async def helper() -> None: ...

    class Classy:
        name = "classy"
        tools = (helper,)

        async def run(self, ctx: TurnContext) -> None: ...

    async def bare(ctx: TurnContext) -> None: ...

    assert as_agent(bare).name == "bare"
    for value in (Classy, Classy()):
        loaded = as_agent(value)
        assert (loaded.name, list(loaded.tools)) == ("classy", ["helper"])
    ready = agent(name="ready")(bare)
    assert as_agent(ready) is ready
    assert isinstance(ready, Agent)


@pytest.mark.parametrize("names", ["", " , ", "no_colon", "os:path", "a.b.c:d", ":", "os:"])
def test_what_is_no_agent_is_told_in_one_line(names: str) -> None:
    with pytest.raises(AgentLoadError) as refused:
        load_agents(names)
    assert "\n" not in str(refused.value)


def test_agents_are_loaded_in_order_and_under_distinct_names() -> None:
    names = "agent_runtime.demo:echo, agent_runtime.demo:script"
    assert list(load_agents(names)) == ["echo", "script"]
    with pytest.raises(AgentLoadError, match="another agent"):
        load_agents("agent_runtime.demo:echo,agent_runtime.demo:echo")


def test_two_tools_of_one_name_are_refused() -> None:
    @tool(name="x")
    async def x() -> None: ...

    with pytest.raises(ValueError, match="two tools"):
        agent(tools=[x, x])(lambda ctx: asyncio.sleep(0))
