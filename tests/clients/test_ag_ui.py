"""AG-UI's own agent, as it is published, against a real edge: turns, tools, stops, errors, cuts and questions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import ANY

import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.journal.memory import MemoryJournal
from tests.clients.script import NodeScript, node_script
from tests.support.http_client import ask, post
from tests.support.live_edge import FixedClock, LiveEdge, live_edge
from tests.support.scripted_runtime import (
    ScriptedRuntime,
    completed,
    emit,
    finished,
    hang,
    suspended,
    text,
    tool_finished,
    tool_started,
    wait_for_ack,
    wait_for_cancel,
)

pytestmark = pytest.mark.realtime

CLIENTS = ("@ag-ui/client", "ag-ui-client-previous")
THREAD = "a-thread-of-a-client"

State = dict[str, Any]


class Agent:
    """The agent under node."""

    def __init__(self, script: NodeScript) -> None:
        self._script = script
        self._asked = 0

    async def begin(self, name: str, *args: object) -> None:
        self._asked += 1
        await self._script.tell({"name": name, "args": args})

    async def call(self, name: str, *args: object) -> State:
        """Call a method, and return what the agent holds when it has ended."""
        await self.begin(name, *args)
        return await self.end()

    async def end(self) -> State:
        asked = self._asked
        return dict(await self._script.until(lambda said: said["answers"] == asked))

    async def until_it_says(self, words: str) -> State:
        return dict(await self._script.until(lambda said: words in str(said["messages"])))

    async def ask(self, words: str, **parameters: object) -> State:
        """Let the user say something, and run."""
        await self.say(words)
        return await self.call("runAgent", parameters)

    async def say(self, words: str) -> None:
        await self.call("addMessage", {"id": f"u-{words}", "role": "user", "content": words})


@asynccontextmanager
async def agent(
    edge: LiveEdge, package: str = CLIENTS[0], *, path: str = "run"
) -> AsyncIterator[Agent]:
    url = f"http://127.0.0.1:{edge.port}/v1/ag-ui/agent/default/{path}"
    options = {"packageName": package, "url": url, "threadId": THREAD}
    async with node_script("ag_ui.mjs", options) as script:
        yield Agent(script)


def texts(state: State) -> list[tuple[str, str]]:
    return [(m["role"], m.get("content", "")) for m in state["messages"]]


def whole_turn() -> ScriptedRuntime:
    runtime = ScriptedRuntime()
    whole = completed("m1", "Let me check.")
    whole.reasoning = "Hm"
    begun = [pb.ReasoningDelta(message_id="m1", text="Hm"), text("m1", "Let me "), whole]
    runtime.play(
        emit(*begun, tool_started("c1", '{"n":1}')),
        wait_for_ack(),
        emit(tool_finished("c1", '{"sum":2}'), tool_started("c2")),
        wait_for_ack(),
        emit(pb.ToolCallFinished(tool_call_id="c2", outcome=pb.TOOL_OUTCOME_UNKNOWN)),
        emit(pb.StateDelta(changes=[pb.StateChange(key="last", value_json='"x"')])),
        emit(completed("m2", "Two."), finished()),
    )
    return runtime


@pytest.mark.proves("P-AGUI-1", "P-AGUI-2", "P-AGUI-5", "P-AGUI-12")
@pytest.mark.parametrize("package", CLIENTS)
async def test_a_whole_turn_with_tools(package: str) -> None:
    async with live_edge(whole_turn()) as edge, agent(edge, package) as client:
        state = await client.ask("Add")
        assert texts(state) == [
            ("user", "Add"),
            ("reasoning", "Hm"),
            ("assistant", "Let me check."),
            ("assistant", ""),
            ("tool", '{"sum":2}'),
            ("assistant", ""),
            ("tool", '{"outcome":"unknown"}'),
            ("assistant", "Two."),
        ]
        call = state["messages"][3]["toolCalls"][0]
        assert call["function"] == {"name": "act", "arguments": '{"n":1}'}
        assert state["state"] == {"last": "x"}
        assert state["ends"] == [{"type": "success"}]
        assert state["errors"] == []
        # The user's other message goes to the same thread, and finds it idle.
        assert texts(await client.ask("Again"))[-1] == ("assistant", "Two.")
        assert [r.turn.session_id for r in edge.runtime.requests] == [THREAD, THREAD]


def complaints(state: State) -> list[str]:
    """Return what the client has to say against our stream: nothing, but for what it does not keep."""
    return [c for c in state["complaints"] if "Removed unrecognised" in c or "Cannot send" in c]


@pytest.mark.proves("P-AGUI-7", "P-AGUI-11")
@pytest.mark.parametrize(
    ("package", "outcome"), [(CLIENTS[0], {"type": "cancelled"}), (CLIENTS[1], None)]
)
async def test_a_stop(package: str, outcome: object) -> None:
    runtime = ScriptedRuntime()
    cancelled = pb.TurnFinished(outcome=pb.TURN_OUTCOME_CANCELLED)
    runtime.play(emit(text("m1", "On and ")), wait_for_cancel(), emit(cancelled))
    async with live_edge(runtime) as edge, agent(edge, package) as client:
        await client.say("Go")
        await client.begin("runAgent")
        await client.until_it_says("On and ")
        assert (await stop(edge)) == {"stopped": True}
        state = await client.end()
        assert texts(state)[-1] == ("assistant", "On and ")
        assert (state["ends"], state["errors"], complaints(state)) == ([outcome], [], [])
        assert (await stop(edge)) == {"stopped": False}


async def stop(edge: LiveEdge) -> object:
    answer = await post(edge.port, f"/v1/ag-ui/agent/default/stop/{THREAD}", {"runId": "run"})
    assert answer.status == 200, answer
    return answer.json


@pytest.mark.proves("P-AGUI-7", "T26")
@pytest.mark.parametrize("package", CLIENTS)
async def test_an_error_keeps_what_was_shown_and_lets_the_user_go_on(package: str) -> None:
    runtime = ScriptedRuntime()
    error = pb.ErrorInfo(reason="MODEL_AWAY", user_message="Sorry.")
    failed = pb.TurnFinished(outcome=pb.TURN_OUTCOME_FAILED, error=error)
    runtime.play(emit(text("m1", "Half ")), emit(failed))
    runtime.play(emit(completed("m1", "Whole."), finished()))
    async with live_edge(runtime) as edge, agent(edge, package) as client:
        state = await client.ask("Try")
        assert state["ends"] == [{"code": "MODEL_AWAY", "message": "Sorry."}]
        assert texts(state)[-1] == ("assistant", "Half ")
        state = await client.ask("Try again")
        assert texts(state)[-1] == ("assistant", "Whole.")
        assert complaints(state) == []


@pytest.mark.proves("P-AGUI-3", "P-AGUI-11", "P-AGUI-12", "S05", "S25", "S57", "T38")
@pytest.mark.parametrize("package", CLIENTS)
async def test_an_edge_that_leaves_mid_turn_is_an_error_and_another_one_tells_it_all(
    package: str,
) -> None:
    runtime = ScriptedRuntime()
    runtime.play(emit(completed("m1", "First."), text("m2", "And ")), hang())
    runtime.play(emit(text("m2", "And then"), completed("m2", "And then."), finished()))
    journal = MemoryJournal(FixedClock())
    async with live_edge(runtime, journal=journal) as first:
        async with agent(first, package) as client:
            await client.say("Tell")
            await client.begin("runAgent")
            await client.until_it_says("And ")
            await first.registry.drain(10.0)
            state = await client.end()
            assert len(state["errors"]) == 1
            assert state["ends"] == []
        async with (
            live_edge(runtime, journal=journal) as second,
            agent(second, package, path="connect") as client,
        ):
            state = await client.call("runAgent")
            wanted = [("user", "Tell"), ("assistant", "First."), ("assistant", "And then.")]
            assert texts(state) == wanted
            assert state["messages"][0]["id"] == "u-Tell"
            assert (state["ends"], state["errors"]) == ([{"type": "success"}], [])
            # Told once more, over what it shows, it shows the same.
            assert texts(await client.call("runAgent")) == wanted


@pytest.mark.proves("P-AGUI-11", "S01", "S62")
async def test_a_second_page_connects_mid_turn_and_goes_on_with_it() -> None:
    runtime = ScriptedRuntime()
    runtime.play(
        emit(text("m1", "One ")),
        wait_for_cancel(),
        emit(text("m1", "two"), completed("m1", "One two"), finished()),
    )
    async with live_edge(runtime) as edge, agent(edge) as first:
        await first.say("Count")
        await first.begin("runAgent")
        await first.until_it_says("One ")
        async with agent(edge, path="connect") as second:
            await second.begin("runAgent")
            await second.until_it_says("One ")
            await stop(edge)
            wanted = [("user", "Count"), ("assistant", "One two")]
            assert [texts(await client.end()) for client in (first, second)] == [wanted, wanted]


@pytest.mark.proves("P-AGUI-8", "P-AGUI-10")
@pytest.mark.parametrize("package", CLIENTS)
@pytest.mark.parametrize("approved", [True, False])
async def test_a_person_is_asked_and_answers(package: str, approved: bool) -> None:
    runtime = ScriptedRuntime()
    asks = suspended(pb.SUSPEND_REASON_INPUT_REQUIRED, "c1")
    runtime.play(emit(tool_started("c1")), wait_for_ack(), emit(asks))
    runtime.play(emit(tool_finished("c1", '"paid"'), completed("m1", "Done."), finished()))
    async with live_edge(runtime) as edge, agent(edge, package) as client:
        state = await client.ask("Pay")
        [asked] = state["pendingInterrupts"]
        assert asked == {"id": ANY, "reason": "input_required", "toolCallId": asked["id"]}
        answer = {
            "interruptId": asked["id"],
            "status": "resolved",
            "payload": {"approved": approved},
        }
        state = await client.call("runAgent", {"resume": [answer]})
        assert texts(state)[-2:] == [("tool", '"paid"'), ("assistant", "Done.")]
        assert [end["type"] for end in state["ends"]] == ["interrupt", "success"]
        assert (state["pendingInterrupts"], state["errors"]) == ([], [])
        [resolution] = edge.runtime.requests[1].resolutions  # type: ignore[union-attr]
        assert resolution.execute is approved


@pytest.mark.proves("P-AGUI-8", "P-AGUI-10")
@pytest.mark.parametrize("package", CLIENTS)
async def test_a_tool_of_the_page_brings_its_result_as_a_message(package: str) -> None:
    runtime = ScriptedRuntime()
    started = tool_started("c1", gated=False)
    started.executor = pb.TOOL_EXECUTOR_CLIENT
    runtime.play(emit(started, suspended(pb.SUSPEND_REASON_CLIENT_TOOL, "c1")))
    runtime.play(emit(tool_finished("c1", '{"lat":1}'), completed("m1", "There."), finished()))
    async with live_edge(runtime) as edge, agent(edge, package) as client:
        state = await client.ask("Where")
        [call] = state["messages"][-1]["toolCalls"]
        result = {"id": "r-1", "role": "tool", "toolCallId": call["id"], "content": '{"lat":1}'}
        await client.call("addMessage", result)
        state = await client.call("runAgent")
        # The page has its own result already, and is not told it again.
        assert texts(state)[2:] == [("tool", '{"lat":1}'), ("assistant", "There.")]
        assert state["errors"] == []
        [resolution] = edge.runtime.requests[1].resolutions  # type: ignore[union-attr]
        assert resolution.finished.result_json == '{"lat":1}'


@pytest.mark.proves("P-AGUI-9", "S32")
async def test_an_attempt_that_crashed_is_taken_back_before_the_next_one_speaks() -> None:
    runtime = ScriptedRuntime()
    runtime.play(emit(completed("m1", "Kept."), text("m2", "Lost")))
    runtime.play(emit(completed("m3", "Found."), finished()))
    async with live_edge(runtime) as edge, agent(edge) as client:
        state = await client.ask("Go")
        assert texts(state) == [("user", "Go"), ("assistant", "Kept."), ("assistant", "Found.")]
        assert "MESSAGES_SNAPSHOT" in state["events"]
        assert complaints(state) == []


@pytest.mark.proves("P-AGUI-1", "P-HTTP-6")
async def test_a_run_beside_another_one_is_refused_and_the_same_one_is_not_run_twice() -> None:
    runtime = ScriptedRuntime()
    runtime.play(emit(text("m1", "Slow")), wait_for_cancel(), emit(finished()))
    async with live_edge(runtime) as edge, agent(edge) as first, agent(edge) as second:
        await first.say("Go")
        await first.begin("runAgent", {"runId": "run-1"})
        await first.until_it_says("Slow")
        assert "HTTP 409" in (await second.ask("Me too"))["errors"][0]
        await second.call("setMessages", [{"id": "u-Go", "role": "user", "content": "Go"}])
        await second.begin("runAgent", {"runId": "run-1"})
        await second.until_it_says("Slow")
        await stop(edge)
        assert texts(await first.end()) == texts(await second.end())
        assert len(edge.runtime.requests) == 1


@pytest.mark.proves("P-AGUI-11")
async def test_a_thread_of_nobody_is_empty_and_agents_are_named() -> None:
    async with live_edge(ScriptedRuntime()) as edge:
        async with agent(edge, path="connect") as client:
            state = await client.call("runAgent")
            assert (state["messages"], state["events"]) == ([], [])
        told = (await ask(edge.port, "GET", "/v1/ag-ui/info")).json
        assert list(told["agents"]) == ["default", "script"]
        assert told["mode"] == "sse"
