"""The published kits, told to send a token as their documentation says, when it expires amid an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from edge.main import WallClock
from tests.clients.ai_sdk_chat import PACKAGES, call, ended, send, shows
from tests.clients.script import State, node_script
from tests.support.issuer import Issuer, bearer, ends_in, token
from tests.support.live_edge import LiveEdge, live_edge
from tests.support.scripted_runtime import (
    ScriptedRuntime,
    completed,
    emit,
    finished,
    text,
    wait_for,
)

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(120), pytest.mark.proves("T50", "P-SSE-21")]

AG_UI = "@ag-ui/client"
CHAT = "a-thread-of-a-client"
Call = Callable[..., Awaitable[State]]


def headers(seconds: float) -> dict[str, str]:
    """Return what a page sends whose token is taken for that long."""
    return dict([bearer(token(exp=ends_in(seconds)))])


def answering(go: asyncio.Event) -> ScriptedRuntime:
    runtime = ScriptedRuntime()
    rest = emit(text("m1", "lo"), completed("m1", "Hello"), finished())
    runtime.play(emit(text("m1", "Hel")), wait_for(go), rest)
    return runtime


async def test_a_chat_is_told_of_the_cut_and_of_the_stale_token_and_goes_on_with_another() -> None:
    go = asyncio.Event()
    async with (
        Issuer().serve() as issuer,
        live_edge(answering(go), authenticator=issuer.authenticator(), clock=WallClock()) as edge,
    ):
        api = f"http://127.0.0.1:{edge.port}/v1/ai-sdk/v7"
        options = {"packageName": PACKAGES["v7"], "api": api, "id": CHAT}
        async with node_script("ai_sdk.mjs", options) as chat:
            await chat.tell({})
            await chat.until(lambda state: state["status"] == "ready")  # it has started
            await chat.tell({"headers": headers(4)})
            await send(chat)
            await chat.until(shows("Hel"))
            cut = await chat.until(ended())
            assert cut["status"] == "error" and cut["finishes"][0]["isError"]
            await call(chat, "resumeStream")
            stale = await chat.until(lambda state: "token-expired" in str(state.get("error")))
            assert stale["status"] == "error"
            await chat.tell({"headers": headers(3_600)})
            await call(chat, "resumeStream")
            go.set()
            await chat.until(shows("Hello"))
            assert "error" not in await chat.until(lambda state: state["status"] == "ready")


@asynccontextmanager
async def ag_ui_agent(edge: LiveEdge, path: str) -> AsyncIterator[Call]:
    """Run one of AG-UI's agents; the value calls a method and returns what the agent holds then."""
    url = f"http://127.0.0.1:{edge.port}/v1/ag-ui/agent/default/{path}"
    options = {"packageName": AG_UI, "url": url, "threadId": CHAT}
    async with node_script("ag_ui.mjs", options, AG_UI) as agent:

        async def call(name: str, value: object, **news: object) -> State:
            answers = agent.last.get("answers", 0)
            await agent.tell({"name": name, "args": [value], **news})
            return await agent.until(lambda said: said["answers"] > answers)

        yield call


async def test_an_agent_fails_at_the_cut_and_at_the_stale_token_and_goes_on_with_another() -> None:
    go = asyncio.Event()
    async with (
        Issuer().serve() as issuer,
        live_edge(answering(go), authenticator=issuer.authenticator(), clock=WallClock()) as edge,
        ag_ui_agent(edge, "run") as run,
        ag_ui_agent(edge, "connect") as connect,
    ):
        await run("addMessage", {"id": "u1", "role": "user", "content": "Hi"})
        await connect("setMessages", [])  # both have started: a token lives for seconds
        stale = headers(4)
        cut = await run("runAgent", {}, headers=stale)
        assert cut["errors"] and cut["ends"] == []
        assert cut["messages"][-1]["content"] == "Hel"
        refused = await connect("runAgent", {}, headers=stale)
        assert "401" in refused["errors"][0] and "token-expired" in refused["errors"][0]
        go.set()
        whole = await connect("runAgent", {}, headers=headers(3_600))
        assert whole["errors"] == refused["errors"]
        assert whole["messages"][-1]["content"] == "Hello"
