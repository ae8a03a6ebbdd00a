"""The AI SDK's own chat, of both majors in use, as a client of a real edge over a scripted runtime.

Nothing is done for it that its documentation does not tell a page to do: an address, an id, and now and then a
method of the chat.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from unbroken.v1 import agent_runtime_pb2 as pb

from tests.clients.ai_sdk_chat import PACKAGES, answer, call, ended, send, shows, texts
from tests.clients.script import NodeScript, node_script
from tests.support.http_client import ask
from tests.support.live_edge import LiveEdge, live_edge
from tests.support.scripted_runtime import (
    ScriptedRuntime,
    Step,
    completed,
    emit,
    finished,
    suspended,
    text,
    tool_finished,
    tool_started,
    wait_for,
    wait_for_ack,
    wait_for_cancel,
)
from tests.support.tcp_proxy import TcpProxy

pytestmark = pytest.mark.realtime

CHAT = "abcdefghijklmnop"
APPROVALS = "lastAssistantMessageIsCompleteWithApprovalResponses"
TOOL_CALLS = "lastAssistantMessageIsCompleteWithToolCalls"


@dataclass
class Stage:
    """An edge behind a wire that can be cut, and the chats of one major that use it."""

    major: str
    edge: LiveEdge
    wire: TcpProxy
    open: AsyncExitStack = field(default_factory=AsyncExitStack)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def runtime(self) -> ScriptedRuntime:
        return self.edge.runtime

    @property
    def api(self) -> str:
        return f"/v1/ai-sdk/{self.major}"

    async def chat(self, **options: Any) -> NodeScript:
        """Open a page."""
        settings = {
            "packageName": PACKAGES[self.major],
            "api": f"http://127.0.0.1:{self.wire.port}{self.api}",
            "id": CHAT,
            **options,
        }
        return await self.open.enter_async_context(node_script("ai_sdk.mjs", settings))

    def wait(self) -> Step:
        """Return a step of the runtime that waits until the test opens the gate."""
        return wait_for(self.gate)


@pytest_asyncio.fixture(params=PACKAGES)
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    async with live_edge(ScriptedRuntime()) as edge, _wire(edge.port) as wire:
        made = Stage(request.param, edge, wire)
        async with made.open:
            yield made


@asynccontextmanager
async def _wire(port: int) -> AsyncIterator[TcpProxy]:
    wire = TcpProxy(port)
    await wire.open()
    try:
        yield wire
    finally:
        await wire.close()


@pytest.mark.proves("P-AI-1", "P-AI-5", "P-AI-8", "S31")
async def test_a_whole_turn_with_tools_and_then_another_one(stage: Stage) -> None:
    fail = pb.ToolCallFinished(tool_call_id="c2", outcome=pb.TOOL_OUTCOME_UNKNOWN)
    fail.error.reason = "LOST"
    first = completed("m1", "Let me look.")
    first.reasoning = "Hm."
    stage.runtime.play(
        emit(pb.ReasoningDelta(message_id="m1", text="Hm.")),
        emit(text("m1", "Let me "), first),
        emit(tool_started("c1", '{"n":1}'), tool_started("c2")),
        wait_for_ack(),
        emit(tool_finished("c1", '{"row":1}'), fail),
        emit(text("m2", "Done."), completed("m2", "Done."), finished()),
    )
    stage.runtime.play(emit(completed("m1", "Bye."), finished()))
    chat = await stage.chat()
    await send(chat)
    state = await chat.until(ended())
    assert (state["status"], state.get("error"), state["toolCalls"]) == ("ready", None, [])
    assert [(part["type"], part.get("state")) for part in answer(state)] == [
        ("reasoning", "done"),
        ("text", "done"),
        ("dynamic-tool", "output-available"),
        ("dynamic-tool", "output-error"),
        ("text", "done"),
    ]
    assert answer(state)[2]["output"] == {"row": 1}
    assert answer(state)[3]["toolMetadata"]["outcome"] == "unknown"
    assert texts(state) == "Let me look.Done."
    await send(chat, "And now?")
    state = await chat.until(ended(2))
    assert texts(state) == "Bye."
    assert [message["role"] for message in state["messages"]] == ["user", "assistant"] * 2


@pytest.mark.proves("P-AI-4", "P-AI-5", "P-AI-6", "S04", "S25", "S50")
async def test_a_cut_amid_an_answer_loses_and_repeats_nothing(stage: Stage) -> None:
    stage.runtime.play(
        emit(tool_started("c1")),
        wait_for_ack(),
        emit(tool_finished("c1"), text("m1", "Hel")),
        stage.wait(),
        emit(text("m1", "lo"), completed("m1", "Hello"), finished()),
    )
    chat = await stage.chat()
    await send(chat)
    await chat.until(shows("Hel"))
    stage.wire.cut()
    state = await chat.until(ended())
    assert (state["status"], state["error"]["name"]) == ("error", "TypeError")
    await call(chat, "resumeStream")
    await chat.until(lambda state: state["status"] == "streaming" and texts(state) == "Hel")
    stage.gate.set()
    state = await chat.until(ended(2))
    assert (state["status"], texts(state)) == ("ready", "Hello")
    assert [part["type"] for part in answer(state)] == ["dynamic-tool", "text"]
    assert len(state["messages"]) == 2
    assert len(stage.runtime.requests) == 1


@pytest.mark.proves("P-AI-4", "S06", "S26")
async def test_a_page_that_was_away_at_the_end_gets_the_whole_answer(stage: Stage) -> None:
    stage.runtime.play(emit(completed("m0", "Earlier."), finished()))
    stage.runtime.play(
        emit(text("m1", "Hel")), stage.wait(), emit(completed("m1", "Hello"), finished())
    )
    chat = await stage.chat()
    await send(chat)
    await chat.until(ended())
    await send(chat, "More")
    await chat.until(shows("Hel"))
    stage.wire.cut()
    await chat.until(ended(2))
    stage.gate.set()
    await stage.runtime.until(lambda: stage.runtime.left == ["finished"] * 2)
    await call(chat, "resumeStream")
    state = await chat.until(ended(3))
    assert (state["status"], texts(state)) == ("ready", "Hello")
    assert len(state["messages"]) == 4


@pytest.mark.proves("P-AI-4", "S44")
async def test_a_page_that_loads_amid_an_answer_joins_it(stage: Stage) -> None:
    stage.runtime.play(
        emit(text("m1", "Hel")), stage.wait(), emit(completed("m1", "Hello"), finished())
    )
    first = await stage.chat()
    await call(first, "resumeStream")  # there is nothing yet
    await send(first)
    asked = (await first.until(shows("Hel")))["messages"][:1]
    second = await stage.chat(messages=asked)
    await call(second, "resumeStream")
    await second.until(shows("Hel"))
    stage.gate.set()
    states = [await chat.until(ended()) for chat in (first, second)]
    assert states[0]["messages"] == states[1]["messages"]
    assert len(stage.runtime.requests) == 1


@pytest.mark.proves("P-AI-9", "P-AI-11", "S49", "S54", "S55")
async def test_a_stop_keeps_what_was_shown(stage: Stage) -> None:
    stage.runtime.play(emit(text("m1", "Hel")), wait_for_cancel())
    chat = await stage.chat()
    await send(chat)
    await chat.until(shows("Hel"))
    stopped = await ask(stage.edge.port, "POST", f"{stage.api}/{CHAT}/stop")
    assert stopped.status == 202
    state = await chat.until(ended())
    assert (state["status"], texts(state)) == ("ready", "Hel")
    assert answer(state)[0]["state"] == "done"
    assert state["finishes"][0]["finishReason"] in ("interrupted", "other")
    await call(chat, "resumeStream")
    assert (await chat.until(ended(2)))["messages"] == state["messages"]


@pytest.mark.proves("P-AI-11", "S52")
async def test_the_clients_own_stop_only_leaves(stage: Stage) -> None:
    stage.runtime.play(
        emit(text("m1", "Hel")), stage.wait(), emit(completed("m1", "Hello"), finished())
    )
    chat = await stage.chat()
    await send(chat)
    await chat.until(shows("Hel"))
    await call(chat, "stop")
    await chat.until(ended())
    stage.gate.set()
    await call(chat, "resumeStream")
    assert texts(await chat.until(ended(2))) == "Hello"
    assert stage.runtime.cancels == []


@pytest.mark.proves("P-AI-9", "T26")
async def test_a_turn_that_fails_is_an_error_in_the_agents_words(stage: Stage) -> None:
    end = pb.TurnFinished(outcome=pb.TURN_OUTCOME_FAILED)
    end.error.reason, end.error.user_message = "OUT", "Out of tokens."
    stage.runtime.play(emit(text("m1", "Hel"), completed("m1", "Hel"), end))
    chat = await stage.chat()
    await send(chat)
    state = await chat.until(ended())
    assert (state["status"], state["error"]["message"]) == ("error", "Out of tokens.")
    assert texts(state) == "Hel"


@pytest.mark.proves("P-AI-2", "P-AI-3")
async def test_a_retry_of_what_was_refused_starts_the_turn(stage: Stage) -> None:
    stage.runtime.play(emit(completed("m1", "Hello"), finished()))
    stage.runtime.play(emit(completed("m1", "Hello again"), finished()))
    chat = await stage.chat()
    stage.wire.refuse()
    await send(chat)
    assert (await chat.until(ended()))["status"] == "error"
    await stage.wire.open()
    await call(chat, "regenerate")
    assert texts(await chat.until(ended(2))) == "Hello"
    await call(chat, "regenerate")
    state = await chat.until(ended(3))
    assert texts(state) == "Hello again"
    assert len(state["messages"]) == 2


@pytest.mark.proves("P-AI-10", "S47")
async def test_an_approval_lets_the_turn_go_on_in_the_same_message(stage: Stage) -> None:
    asked = suspended(pb.SUSPEND_REASON_INPUT_REQUIRED, "c1")
    asked.prompt = "Pay?"
    stage.runtime.play(emit(completed("m1", "One moment."), tool_started("c1", gated=False), asked))
    stage.runtime.play(emit(tool_finished("c1"), completed("m2", "Paid."), finished()))
    chat = await stage.chat(sendWhen=APPROVALS)
    await send(chat)
    state = await chat.until(ended())
    assert (state["status"], answer(state)[1]["state"]) == ("ready", "approval-requested")
    await call(chat, "resumeStream")  # a page that is loaded again asks again
    state = await chat.until(ended(2))
    assert answer(state)[1]["state"] == "approval-requested"
    await call(chat, "addToolApprovalResponse", {"id": "c1", "approved": True})
    state = await chat.until(ended(3))
    assert [part["type"] for part in answer(state)] == ["text", "dynamic-tool", "text"]
    assert answer(state)[1]["state"] == "output-available"
    assert texts(state) == "One moment.Paid."
    await call(chat, "resumeStream")
    state = await chat.until(ended(4))
    assert texts(state) == "One moment.Paid."
    assert (len(state["messages"]), len(stage.runtime.requests)) == (2, 2)


@pytest.mark.proves("P-AI-8", "P-AI-10")
async def test_a_tool_of_the_page_is_run_once(stage: Stage) -> None:
    own = tool_started("c1", gated=False)
    own.executor = pb.TOOL_EXECUTOR_CLIENT
    stage.runtime.play(emit(own, suspended(pb.SUSPEND_REASON_CLIENT_TOOL, "c1")))
    stage.runtime.play(emit(completed("m1", "There."), finished()))
    chat = await stage.chat(sendWhen=TOOL_CALLS)
    await send(chat)
    state = await chat.until(ended())
    assert (state["status"], state["toolCalls"]) == ("ready", ["c1"])
    found = {"tool": "act", "toolCallId": "c1", "output": {"at": 1}}
    await call(chat, "addToolOutput", found)
    state = await chat.until(ended(2))
    assert (state["status"], texts(state)) == ("ready", "There.")
    await call(chat, "resumeStream")
    state = await chat.until(ended(3))
    assert (texts(state), state["toolCalls"]) == ("There.", ["c1"])
    assert (len(state["messages"]), len(stage.runtime.requests)) == (2, 2)


@pytest.mark.proves("P-AI-7", "S32", "P-EVT-3")
async def test_text_of_an_attempt_that_failed_is_gone_in_the_end(stage: Stage) -> None:
    stage.runtime.play(emit(text("m1", "Wrong")))  # and the stream ends without a word
    stage.runtime.play(emit(completed("m2", "Right"), finished()))
    chat = await stage.chat()
    await send(chat)
    state = await chat.until(ended())
    if stage.major == "v6":  # it has no word for what is taken back
        assert state["status"] == "error"
        await call(chat, "resumeStream")
        state = await chat.until(ended(2))
    assert (state["status"], texts(state)) == ("ready", "Right")
    assert len(answer(state)) == 1


@pytest.mark.proves("P-AI-5", "S57", "S79")
async def test_a_drain_amid_an_answer_is_an_error_and_no_success(stage: Stage) -> None:
    stage.runtime.play(emit(text("m1", "Hel")), stage.wait())
    chat = await stage.chat()
    await send(chat)
    await chat.until(shows("Hel"))
    await stage.edge.registry.drain(3)
    state = await chat.until(ended())
    assert (state["status"], state["error"]["name"]) == ("error", "TypeError")
    stage.gate.set()
