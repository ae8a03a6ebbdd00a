"""The calls of the AI SDK's client, byte by byte, to a whole edge over a scripted runtime."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import h11
import pytest
import pytest_asyncio
from unbroken.v1 import agent_runtime_pb2 as pb

from edge.core.errors import SessionExpired
from edge.web.guard import MAX_BODY_BYTES, MAX_CHAT_BYTES
from tests.edge.web.scripted_registry import ScriptedRegistry
from tests.support.http_client import Answer, Exchange, ask, exchange, post
from tests.support.live_edge import LiveEdge, NamedUsers, live_edge, served
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

CHAT = "abcdefghijklmnop"
API = "/v1/ai-sdk/v7"
STOP = f"{API}/{CHAT}/stop"
ADA = ("Authorization", "ada")
JSON = ("Content-Type", "application/json")
HELLO = [text("m1", "Hel"), text("m1", "lo"), completed("m1", "Hello"), finished()]


@pytest_asyncio.fixture
async def runtime() -> ScriptedRuntime:
    return ScriptedRuntime()


@pytest_asyncio.fixture
async def edge(runtime: ScriptedRuntime) -> AsyncIterator[LiveEdge]:
    async with live_edge(runtime, ping_seconds=0.05, authenticator=NamedUsers()) as running:
        yield running


def said(words: str = "Hi", message_id: str = "message-1") -> dict[str, Any]:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": words}]}


def posted(*messages: dict[str, Any], chat: str = CHAT, **more: object) -> dict[str, Any]:
    return {"id": chat, "messages": list(messages), "trigger": "submit-message", **more}


async def send(edge: LiveEdge, *messages: dict[str, Any], user: str = "ada", **more: Any) -> Answer:
    return await post(edge.port, API, posted(*messages, **more), ("Authorization", user))


def sending(edge: LiveEdge, **more: Any) -> AbstractAsyncContextManager[Exchange]:
    """Send a message, and read its stream while it is told."""
    body = json.dumps(posted(said(), **more)).encode()
    return exchange(edge.port, "POST", API, [ADA, JSON], body)


async def resume(edge: LiveEdge) -> Answer:
    return await ask(edge.port, "GET", f"{API}/{CHAT}/stream", [ADA])


def chunks(answer: Answer) -> list[Any]:
    assert answer.status == 200, answer
    lines = [line for line in answer.body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


def words(answer: Answer) -> str:
    return "".join(c["delta"] for c in chunks(answer) if c["type"] == "text-delta")


def spoken(stream: bytes) -> bytes:
    """Leave the pings out: how many there are is a matter of time."""
    return stream.replace(b": ping\n", b"")


async def until(stream: Exchange, marker: bytes) -> bytes:
    """Read until the body holds ``marker``."""
    body = b""
    while marker not in body:
        piece = await stream.data()
        assert piece, body
        body += piece
    return body


@pytest.mark.proves("P-AI-1", "P-AI-5")
async def test_a_chat_is_a_session_that_its_first_message_creates(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(*HELLO))
    answer = await send(edge, said())
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert answer.headers["cache-control"] == "no-store, no-transform"
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert words(answer) == "Hello"
    snapshot = await edge.registry.snapshot("ada", CHAT)
    assert snapshot["turns"][0]["message_id"] == "message-1"


@pytest.mark.proves("P-AI-1", "P-HTTP-3", "S81")
async def test_a_chat_of_somebody_else_is_missing(edge: LiveEdge, runtime: ScriptedRuntime) -> None:
    runtime.play(emit(*HELLO))
    await send(edge, said())
    answer = await send(edge, said(), user="eve")
    assert (answer.status, answer.code) == (404, "session-not-found")
    assert len(runtime.requests) == 1


@pytest.mark.proves("P-AI-1")
async def test_of_a_posted_conversation_only_the_last_message_is_read(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(*HELLO))
    odd = {"id": 1, "parts": [[[[2**70, "\ud800"]]]], "role": "x" * 100_000}
    file = {"type": "file", "url": "https://x.test/a", "mediaType": "image/png", "filename": "a"}
    data = {"type": "data-place", "data": {"at": 1}}
    last = {**said("See"), "parts": [file, {"type": "text", "text": ""}, data], "metadata": odd}
    assert words(await send(edge, odd, last, agent="script", other=odd)) == "Hello"
    kinds = [part.WhichOneof("content") for part in runtime.requests[0].input]
    assert kinds == ["file", "data_json"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ({"id": CHAT}, "/messages"),
        ({"id": CHAT, "messages": []}, "/messages"),
        (posted({**said(), "role": "system"}), "/messages/-/role"),
        (posted({**said(), "parts": "Hi"}), "/messages/-/parts"),
        (posted({**said(), "id": ""}), "/messages/-/id"),
        (posted({**said(), "parts": [1]}), "/messages/-/parts/-"),
        (posted({**said(), "parts": []}), "/input"),
        (posted(said("")), "/input/0/text"),
        (posted({**said(), "parts": [{"type": "html"}]}), "/input/0/type"),
        (posted(said(), agent=7), "/agent"),
        (posted(said(), id=None), "/id"),
    ],
)
async def test_a_body_that_no_client_sends_is_told_where(
    edge: LiveEdge, body: object, pointer: str
) -> None:
    answer = await post(edge.port, API, body)
    assert (answer.status, answer.code) == (422, "invalid-body")
    assert pointer in [error["pointer"] for error in answer.json["errors"]]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"\xff",
        b'{"id":"abcdefghijklmnop","messages":[{"id":"m","role":"user","parts":'
        b'[{"type":"text","text":"\\ud800"}]}]}',
        b'{"id":"abcdefghijklmnop","messages":[{"id":"m","role":"user","parts":'
        b'[{"type":"data-x","data":1e999}]}]}',
    ],
)
async def test_a_body_that_is_no_json_is_refused(
    edge: LiveEdge, runtime: ScriptedRuntime, body: bytes
) -> None:
    answer = await ask(edge.port, "POST", API, [ADA, JSON], body)
    assert (answer.status, answer.code) == (400, "invalid-json")
    assert runtime.requests == []


@pytest.mark.parametrize("chat", ["short", "__0123456789abcdef__", "a/b" * 9, "x" * 65])
async def test_an_id_that_no_session_can_have_is_missing(edge: LiveEdge, chat: str) -> None:
    answer = await send(edge, said(), chat=chat)
    assert (answer.status, answer.code) == (404, "session-not-found")


@pytest.mark.proves("P-AI-1", "P-HTTP-8")
async def test_a_long_conversation_is_taken_up_to_its_limit(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(*HELLO))
    assert words(await send(edge, said("x" * 100_000, "message-0"), said())) == "Hello"
    turns, key = f"/v1/sessions/{CHAT}/turns", ("Idempotency-Key", "k" * 16)
    for path, limit_bytes in ((API, MAX_CHAT_BYTES), (turns, MAX_BODY_BYTES)):
        length = ("Content-Length", str(limit_bytes + 1))
        answer = await ask(edge.port, "POST", path, [JSON, key, length])
        assert (answer.status, answer.code) == (413, "body-too-large")


@pytest.mark.proves("P-AI-2", "T48", "S44")
async def test_a_message_that_is_sent_twice_starts_one_turn_and_gets_it_whole(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(
        emit(text("m1", "Hel")), wait_for_cancel(), emit(completed("m1", "Hel"), finished())
    )
    async with sending(edge) as first:
        begun = await until(first, b"Hel")
        async with sending(edge) as second:
            assert spoken(await until(second, b"Hel")) == spoken(begun)
            await ask(edge.port, "POST", STOP, [ADA])
            rest = spoken(await second.body())
        assert spoken(await first.body()) == rest
    assert spoken((await send(edge, said())).body) == spoken(begun) + rest
    assert len(runtime.requests) == 1


@pytest.mark.proves("P-AI-2", "P-HTTP-6")
async def test_another_message_has_to_wait_until_the_turn_is_over(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(text("m1", "Hel")), hang())
    async with sending(edge) as stream:
        await until(stream, b"Hel")
        for trigger in ("submit-message", "regenerate-message"):
            answer = await send(edge, said("More", "message-2"), trigger=trigger)
            assert (answer.status, answer.code) == (409, "turn-in-progress")


@pytest.mark.proves("P-AI-3")
async def test_a_message_is_answered_again_only_when_its_answer_is_over(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(
        emit(text("m1", "Hel")), wait_for_cancel(), emit(completed("m1", "Hel"), finished())
    )
    runtime.play(emit(completed("m1", "Another"), finished()))
    for _ in range(2):  # the first one finds no answer at all: its own request may have been lost
        async with sending(edge, trigger="regenerate-message") as stream:
            await until(stream, b"Hel")
    assert len(runtime.requests) == 1
    await ask(edge.port, "POST", STOP, [ADA, JSON], b"{}")
    await resume(edge)
    assert words(await send(edge, said(), trigger="regenerate-message")) == "Another"
    assert words(await resume(edge)) == "Another"
    assert words(await send(edge, said())) == "Hel"
    assert len(runtime.requests) == 2


@pytest.mark.proves("P-AI-4", "T47", "S06")
async def test_a_resume_tells_the_newest_turn_from_its_start(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    assert (await resume(edge)).status == 204
    await edge.registry.claim_session("ada", CHAT)
    assert (await resume(edge)).status == 204
    runtime.play(emit(*HELLO))
    runtime.play(emit(completed("m1", "Bye"), finished()))
    await send(edge, said())
    whole = await send(edge, said("More", "message-2"))
    assert words(whole) == "Bye"
    assert spoken((await resume(edge)).body) == spoken(whole.body)


async def test_a_chat_whose_log_has_expired_has_nothing_to_resume() -> None:
    async with served(ScriptedRegistry(failure=SessionExpired())) as port:
        assert (await ask(port, "GET", f"{API}/{CHAT}/stream")).status == 204


@pytest.mark.proves("P-AI-5", "S57", "T45", "S79")
async def test_an_edge_that_drains_cuts_a_stream_that_is_not_over(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(emit(text("m1", "Hel")), hang())
    async with sending(edge) as stream:
        await until(stream, b"Hel")
        draining = asyncio.create_task(edge.registry.drain(3))
        with pytest.raises(h11.RemoteProtocolError):
            await stream.body()
        await draining
    answer = await resume(edge)
    assert (answer.status, answer.code) == (503, "draining")


@pytest.mark.proves("P-AI-11", "S49", "S55")
async def test_a_stop_ends_the_turn_and_what_was_shown_stays(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    assert (await ask(edge.port, "POST", STOP, [ADA])).status == 404
    runtime.play(emit(text("m1", "Hel")), wait_for_cancel())
    async with sending(edge) as stream:
        begun = await until(stream, b"Hel")
        answer = await ask(edge.port, "POST", STOP, [ADA])
        assert (answer.status, answer.json) == (202, {"state": "cancelling"})
        rest = await stream.body()
    assert b'"type":"abort"' in rest and b'"interrupted"' in rest
    assert spoken((await resume(edge)).body) == spoken(begun + rest)
    answer = await ask(edge.port, "POST", STOP, [ADA])
    assert (answer.status, answer.json) == (200, {"state": "done"})


async def test_a_stop_that_comes_too_late_says_so() -> None:
    async with served(ScriptedRegistry(cancelled="done")) as port:
        assert (await ask(port, "POST", STOP, [JSON], b'{"turn":"t1"}')).status == 422
        answer = await ask(port, "POST", STOP)
    assert (answer.status, answer.json) == (200, {"state": "done"})


def decided(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": "turn-1", "role": "assistant", "parts": list(parts)}


def approval(call_id: str, approved: bool, **more: str) -> dict[str, Any]:
    answer = {"id": call_id, "approved": approved, **more}
    state = "approval-responded"
    return {"type": "dynamic-tool", "toolCallId": call_id, "state": state, "approval": answer}


def output(call_id: str, state: str, **more: object) -> dict[str, Any]:
    return {"type": "tool-locate", "toolCallId": call_id, "state": state, **more}


def resolutions(runtime: ScriptedRuntime) -> list[Any]:
    resumed = runtime.requests[1]
    assert isinstance(resumed, pb.ResumeTurnRequest)
    return sorted(resumed.resolutions, key=lambda resolution: resolution.tool_call_id)


@pytest.mark.proves("P-AI-10", "P-HTTP-13", "P-HTTP-14")
async def test_decisions_let_a_turn_go_on_from_where_it_waited(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    asked = suspended(pb.SUSPEND_REASON_INPUT_REQUIRED, "c1", "c2")
    runtime.play(emit(tool_started("c1", gated=False), tool_started("c2", gated=False), asked))
    moved = suspended(pb.SUSPEND_REASON_DRAINING)
    runtime.play(emit(tool_finished("c1"), tool_finished("c2"), moved))
    runtime.play(emit(completed("m1", "Paid"), finished()))
    assert chunks(await send(edge, said()))[-1]["finishReason"] == "tool-calls"
    half = await send(edge, said(), decided(approval("c1", True)))
    assert (half.status, half.code) == (404, "tool-call-not-found")
    both = decided(approval("c1", True), approval("c2", False, reason="Dear"))
    rest = await send(edge, said(), both)
    assert [c["type"] for c in chunks(rest)][:2] == ["start", "start-step"]
    assert "tool-input-available" not in [c["type"] for c in chunks(rest)]
    assert words(rest) == "Paid"
    brought = {r.tool_call_id: r.execute for r in resolutions(runtime)}
    assert brought == {"c1": True, "c2": False}
    assert spoken((await send(edge, said(), both)).body) == spoken(rest.body)
    other = await send(edge, said(), decided(approval("c1", False), approval("c2", False)))
    assert (other.status, other.code) == (409, "tool-call-settled")
    assert len(runtime.requests) == 3


@pytest.mark.proves("P-AI-10", "P-AI-8")
async def test_the_outcome_of_a_pages_own_tool_is_a_decision(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    asked = suspended(pb.SUSPEND_REASON_CLIENT_TOOL, "c1", "c2")
    calls = [tool_started(c, gated=False) for c in ("c1", "c2")]
    for call in calls:
        call.executor = pb.TOOL_EXECUTOR_CLIENT
    runtime.play(emit(*calls, asked))
    runtime.play(emit(completed("m1", "There"), finished()))
    offered = [c for c in chunks(await send(edge, said())) if c["type"] == "tool-input-available"]
    assert not any("providerExecuted" in chunk for chunk in offered)
    found = output("c1", "output-available", output={"at": 1})
    lost = output("c2", "output-error", errorText="No signal")
    assert words(await send(edge, said(), decided(found, lost))) == "There"
    one, two = (r.finished for r in resolutions(runtime))
    assert json.loads(one.result_json) == {"at": 1}
    assert two.error.user_message == "No signal"


async def test_an_assistants_message_without_a_turn_decides_nothing(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    message = decided(approval("c1", True))
    for _ in range(2):
        assert (await send(edge, message)).code == "session-not-found"
        await edge.registry.claim_session("ada", CHAT)
    runtime.play(emit(*HELLO))
    await send(edge, said())
    assert (await send(edge, said(), message)).code == "tool-call-not-found"


@pytest.mark.proves("P-AI-7", "P-EVT-3", "S32")
async def test_a_runtime_that_dies_amid_a_message_costs_nothing_but_a_step(
    edge: LiveEdge, runtime: ScriptedRuntime
) -> None:
    runtime.play(
        emit(tool_started("c0")), wait_for_ack(), emit(tool_finished("c0"), text("m1", "Wro"))
    )
    runtime.play(emit(completed("m2", "Right"), finished()))
    answer = await send(edge, said())
    kinds = [chunk["type"] for chunk in chunks(answer)]
    assert kinds.count("reset-step") == 1
    assert words(await resume(edge)) == "Right"
