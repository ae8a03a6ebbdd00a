"""The client library, imported by its npm name, against a real edge whose wire is cut amid the turn.

Knows nothing of how it reconnects: virtual time is for that (stream.test.mjs).
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.edge.static.pages import page
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
)
from tests.support.tcp_proxy import tcp_proxy

KEY = "one-turn-one-key-0"
PATIENCE_SECONDS = 60.0
"""Longer than node takes to start on a busy machine."""


class Told:
    """What the script has said so far."""

    def __init__(self) -> None:
        self.newest: dict[str, Any] = {"view": {"turns": []}}
        self.states: set[str] = set()

    def take(self, news: dict[str, Any]) -> None:
        self.newest |= news
        self.states.add(self.newest.get("state", ""))

    @property
    def items(self) -> list[dict[str, Any]]:
        """The turn as it is shown, without what only a page needs."""
        shown = [item for turn in self.newest["view"]["turns"] for item in turn["items"]]
        return [{name: item[name] for name in item if name != "key"} for item in shown]

    @property
    def amid_the_answer(self) -> bool:
        """Whether the turn was sent, and its first words are shown."""
        return "sent" in self.newest and [item.get("text") for item in self.items] == ["Hel"]

    @property
    def durable(self) -> list[str]:
        return [cursor for kind, cursor in self.newest["heard"] if kind != "caught_up"]


def one_answer(cut: asyncio.Event) -> ScriptedRuntime:
    """Say half of it, and the rest after the cut."""
    runtime = ScriptedRuntime()
    call = (emit(tool_started("c1")), wait_for_ack(), emit(tool_finished("c1")))
    end = emit(text("m1", "lo"), completed("m1", "Hello"), finished())
    runtime.play(emit(text("m1", "Hel")), wait_for(cut), *call, end)
    return runtime


@pytest.mark.timeout(120)
@pytest.mark.proves("S17", "P-HTTP-5", "P-SSE-9")
async def test_a_turn_whose_wire_is_cut_is_read_whole_and_shown_as_the_journal_has_it(
    tmp_path: Path,
) -> None:
    cut, told = asyncio.Event(), Told()
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        live_edge(one_answer(cut)) as edge,
        tcp_proxy(edge.port) as wire,
        page(tmp_path, "reader.mjs", f"http://127.0.0.1:{wire.port}", KEY) as said,
    ):
        async for news in said:
            told.take(news)
            if told.amid_the_answer and not cut.is_set():
                wire.cut()
                cut.set()
        snapshot = (await ask(edge.port, "GET", f"/v1/sessions/{told.newest['id']}")).json
    first, again = told.newest["sent"]
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["turnId"] == again["turnId"]
    assert "waiting" in told.states
    assert told.durable == [f"1-{seq}" for seq in range(1, len(told.durable) + 1)]
    assert told.items == snapshot["turns"][0]["items"]
    assert told.newest["view"]["cursor"] == snapshot["cursor"]
