"""The published readers of event streams take the native format as it is, and come back where they were."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from tests.clients.script import NodeScript, State, node_script
from tests.support.http_client import post
from tests.support.live_edge import LiveEdge, live_edge
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
from tests.support.sse import parse
from tests.support.tcp_proxy import TcpProxy, tcp_proxy

pytestmark = pytest.mark.realtime

READERS = ("eventsource", "fetch-event-source", "eventsource-parser")
CONTROLS = ("rewind", "reset", "caught_up", "status", "reconnect", "ping")


Got = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Scene:
    """Readers behind a network that can be cut, in front of a turn that has begun."""

    edge: LiveEdge
    network: TcpProxy
    readers: Sequence[NodeScript]
    session_id: str
    turn_id: str

    async def until(self, holds: Callable[[State], bool]) -> list[State]:
        """Wait until it holds for each reader, and return what each of them says then."""
        return list(await asyncio.gather(*(reader.until(holds) for reader in self.readers)))

    async def until_all_have(self, type_: str) -> None:
        await self.until(lambda said: type_ in [event["type"] for event in said["events"]])

    async def check(self) -> tuple[Got, list[State]]:
        """Compare what all of them had in the end with the journal, and return it."""
        states = await self.until(lambda said: bool(said["hasEnded"]))
        journaled = await self._journaled()
        for name, state in zip(READERS, states, strict=False):
            events = [e for e in state["events"] if e["type"] not in CONTROLS]
            assert [(e["type"], e["id"]) for e in events] == journaled, name
        return journaled, states

    async def _journaled(self) -> Got:
        async with self.edge.events(self.session_id) as opened:
            messages = parse(await opened.body())
        return [(m.type, m.last_event_id) for m in messages if m.type not in CONTROLS]


def data_of(state: State, type_: str) -> dict[str, Any]:
    return next(event["data"] for event in state["events"] if event["type"] == type_)


@asynccontextmanager
async def scene(
    runtime: ScriptedRuntime, readers: Sequence[str] = READERS, query: str = "", **settings: Any
) -> AsyncIterator[Scene]:
    async with (
        live_edge(runtime, **settings) as edge,
        tcp_proxy(edge.port) as network,
        AsyncExitStack() as stack,
    ):
        session_id = await edge.session()
        turn_id = str((await edge.turn(session_id)).json["turn_id"])
        url = f"http://127.0.0.1:{network.port}/v1/sessions/{session_id}/events{query}"
        scripts = [node_script("event_streams.mjs", {"reader": r, "url": url}) for r in readers]
        opened = [await stack.enter_async_context(script) for script in scripts]
        yield Scene(edge, network, opened, session_id, turn_id)


@pytest.mark.proves("P-SSE-4", "P-SSE-8", "S73")
async def test_a_whole_turn_with_tools() -> None:
    runtime = ScriptedRuntime()
    runtime.play(
        emit(text("m1", "Grüße \U0001f600\r\n"), completed("m1", "Grüße \U0001f600\r\n")),
        emit(tool_started("c1", '{"n":9007199254740993}')),
        wait_for_ack(),
        emit(tool_finished("c1", '"\u2028"'), completed("m2", "Done."), finished()),
    )
    async with scene(runtime) as on:
        got, states = await on.check()
        assert [type_ for type_, _ in got] == [
            "turn_start",
            "token",
            "message",
            "tool_start",
            "tool_end",
            "message",
            "done",
        ]
        for state in states:
            assert data_of(state, "token")["text"] == "Grüße \U0001f600\r\n"
            arguments = json.loads(data_of(state, "tool_start")["arguments_json"])
            assert arguments == {"n": 9007199254740993}


@pytest.mark.proves("P-SSE-1", "P-SSE-6", "P-SSE-9", "S01", "S16", "S25", "S57")
async def test_a_reader_whose_wire_is_cut_mid_turn_comes_back_to_the_next_event() -> None:
    go, runtime = asyncio.Event(), ScriptedRuntime()
    runtime.play(
        emit(text("m1", "One ")),
        wait_for(go),
        emit(text("m1", "two"), completed("m1", "One two"), tool_started("c1")),
        wait_for_ack(),
        emit(tool_finished("c1"), finished()),
    )
    async with scene(runtime) as on:
        await on.until_all_have("token")
        on.network.cut()
        go.set()
        _, states = await on.check()
        assert all(state["opens"] >= 2 for state in states)
        assert len(runtime.requests) == 1


@pytest.mark.proves("P-SSE-15", "T49")
async def test_a_reader_comes_back_after_an_end_on_purpose() -> None:
    go, runtime = asyncio.Event(), ScriptedRuntime()
    runtime.play(emit(text("m1", "One ")), wait_for(go), emit(completed("m1", "One"), finished()))
    async with scene(runtime, stream_life_seconds=0.5) as on:
        await on.until_all_have("reconnect")
        await on.until(lambda said: said["opens"] >= 2)
        go.set()
        await on.check()


@pytest.mark.proves("P-SSE-20", "T52")
async def test_a_reader_that_asks_for_it_hears_that_a_silent_stream_lives() -> None:
    go, runtime = asyncio.Event(), ScriptedRuntime()
    runtime.play(emit(text("m1", "One ")), wait_for(go), emit(completed("m1", "One"), finished()))
    async with scene(runtime, query="?pings=event", ping_seconds=0.1) as on:
        await on.until_all_have("token")
        await on.until(lambda said: [e["type"] for e in said["events"][-2:]] == ["ping", "ping"])
        on.network.cut()
        go.set()
        await on.check()


@pytest.mark.proves("P-HTTP-10", "P-EVT-6", "S55")
async def test_a_stop_ends_the_stream_with_what_was_shown() -> None:
    runtime = ScriptedRuntime()
    cancelled = pb.TurnFinished(outcome=pb.TURN_OUTCOME_CANCELLED)
    runtime.play(emit(text("m1", "On and ")), wait_for_cancel(), emit(cancelled))
    async with scene(runtime) as on:
        await on.until_all_have("token")
        stop = f"/v1/sessions/{on.session_id}/turns/{on.turn_id}/cancel"
        assert (await post(on.edge.port, stop, {})).status == 202
        _, states = await on.check()
        assert [data_of(state, "done")["outcome"] for state in states] == ["cancelled"] * 3


@pytest.mark.proves("P-EVT-1", "T26")
async def test_an_error_of_a_turn_is_an_event_and_ends_the_stream() -> None:
    runtime = ScriptedRuntime()
    error = pb.ErrorInfo(reason="MODEL_AWAY", user_message="Sorry.")
    failed = pb.TurnFinished(outcome=pb.TURN_OUTCOME_FAILED, error=error)
    runtime.play(emit(text("m1", "Half ")), emit(failed))
    async with scene(runtime) as on:
        got, states = await on.check()
        assert got[-1][0] == "error"
        for told in (data_of(state, "error") for state in states):
            assert (told["code"], told["user_message"]) == ("MODEL_AWAY", "Sorry.")


@pytest.mark.proves("T48")
async def test_a_tab_that_is_hidden_and_shown_again_starts_no_second_run() -> None:
    go, runtime = asyncio.Event(), ScriptedRuntime()
    runtime.play(emit(text("m1", "One ")), wait_for(go), emit(completed("m1", "One"), finished()))
    async with scene(runtime, ["fetch-event-source"]) as on:
        await on.until_all_have("token")
        await on.readers[0].tell({"hidden": True})
        await on.readers[0].tell({"hidden": False})
        await on.until(lambda said: said["opens"] >= 2)
        go.set()
        await on.check()
        assert len(runtime.requests) == 1
