"""The AI SDK's ``useChat`` as React renders it, as a client of a real edge over a scripted runtime.

Only what the hook adds to the chat below it: it resumes by itself when it is mounted and when its tab is shown
again, and renders what comes. All that the chat does is in ``test_ai_sdk.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from tests.clients.ai_sdk_chat import answer, call, send, shows, texts
from tests.clients.script import NodeScript, State, node_script
from tests.support.http_client import ask
from tests.support.live_edge import live_edge
from tests.support.scripted_runtime import (
    ScriptedRuntime,
    completed,
    emit,
    finished,
    text,
    tool_finished,
    tool_started,
    wait_for,
    wait_for_ack,
    wait_for_cancel,
)
from tests.support.tcp_proxy import tcp_proxy

pytestmark = pytest.mark.realtime

API = "/v1/ai-sdk/v7"
CHAT = "abcdefghijklmnop"


def page(port: int, **options: object) -> AbstractAsyncContextManager[NodeScript]:
    """Open a page; to leave it is to close the tab."""
    api = f"http://127.0.0.1:{port}{API}"
    return node_script("ai_sdk_hook.mjs", {"api": api, "id": CHAT, **options}, "@ai-sdk/react")


def ready(words: str) -> Callable[[State], bool]:
    """Return whether nothing is under way any more, and the answer says just that."""
    return lambda state: state["status"] == "ready" and texts(state) == words


@pytest.mark.proves("P-AI-1", "P-AI-4", "P-AI-8", "S44")
async def test_a_page_that_loads_amid_a_turn_with_a_tool_resumes_it_by_itself() -> None:
    gate, runtime = asyncio.Event(), ScriptedRuntime()
    runtime.play(
        emit(completed("m1", "Let me look."), tool_started("c1", '{"n":1}')),
        wait_for_ack(),
        wait_for(gate),
        emit(tool_finished("c1", '{"row":1}'), completed("m2", "Done."), finished()),
    )
    async with live_edge(runtime) as edge:
        async with page(edge.port) as first:
            await first.until(lambda state: state["status"] == "ready")
            await send(first)
            asked = (await first.until(shows("Let me look.")))["messages"][:1]
        async with page(edge.port, messages=asked) as second:
            await second.until(shows("Let me look."))
            gate.set()
            state = await second.until(ready("Let me look.Done."))
    assert [m["role"] for m in state["messages"]] == ["user", "assistant"]
    tool = answer(state)[1]
    assert (tool["state"], tool["output"]) == ("output-available", {"row": 1})
    assert len(runtime.requests) == 1


@pytest.mark.proves("P-AI-9", "P-AI-11")
async def test_a_stop_leaves_the_hook_ready_with_what_was_shown() -> None:
    runtime = ScriptedRuntime()
    runtime.play(emit(text("m1", "Hel")), wait_for_cancel())
    async with live_edge(runtime) as edge, page(edge.port) as tab:
        await send(tab)
        await tab.until(shows("Hel"))
        assert (await ask(edge.port, "POST", f"{API}/{CHAT}/stop")).status == 202
        state = await tab.until(ready("Hel"))
    assert state.get("error") is None
    assert len(runtime.cancels) == 1


@pytest.mark.proves("P-AI-4", "P-AI-5")
async def test_a_tab_that_was_cut_off_resumes_by_itself_when_it_is_shown_again() -> None:
    gate, runtime = asyncio.Event(), ScriptedRuntime()
    runtime.play(
        emit(text("m1", "Hel")), wait_for(gate), emit(completed("m1", "Hello"), finished())
    )
    async with live_edge(runtime) as edge, tcp_proxy(edge.port) as wire, page(wire.port) as tab:
        await send(tab)
        await tab.until(shows("Hel"))
        wire.cut()
        await tab.until(lambda state: state["status"] == "error")
        await call(tab, "show")
        gate.set()
        await tab.until(ready("Hello"))
    assert len(runtime.requests) == 1
