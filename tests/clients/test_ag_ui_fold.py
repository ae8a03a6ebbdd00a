"""AG-UI's published clients take every history that a session can have, and show what it holds in the end."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from edge.core.event import Event
from edge.wire.ag_ui import AgUiFold
from edge.wire.ag_ui_events import frame
from tests.clients.histories import History, Maker, survivors
from tests.clients.script import answer_of

VERSIONS = {"current": "@ag-ui/client", "previous": "ag-ui-client-previous"}
HISTORIES = 100

Messages = list[dict[str, Any]]


class Told:
    """A history as a stream of AG-UI, and what its reader must hold after it."""

    def __init__(self, history: History, version: str, *, anew: bool = False) -> None:
        fold = AgUiFold("thread", declares_version=version == "current", anew=anew)
        said = [fold.apply(s) if isinstance(s, Event) else fold.rewind(s) for s in history]
        self.version = version
        self.stream = ": ping\n" + b"".join(map(frame, said)).decode("ascii")
        self.messages = fold.thread.messages()


def read_all(told: list[Told], shown: list[Messages]) -> list[dict[str, Any]]:
    """Let the clients read the streams, beginning with what each of them has ``shown`` before."""
    work = [
        {"packageName": VERSIONS[t.version], "stream": t.stream, "messages": before}
        for t, before in zip(told, shown, strict=True)
    ]
    return answer_of("ag_ui_fold.mjs", work, "@ag-ui/client")


def made(seed: int) -> History:
    chance = random.Random(seed)
    return Maker(chance).play(chance.randint(1, 3))


def expired(history: History) -> History:
    """Return what the journal has of an old session: calls that were begun before may still end in it."""
    return history[len(history) // 3 :]


def failure_of(history: History) -> str | None:
    """Return the code of the last run error: AG-UI's own complaints would be another text."""
    errors = {"error": "runtime_error", "limit": "limit"}
    ends = [e for e in history if isinstance(e, Event) and e.type in ("done", "error")]
    kinds = [e.type if e.type == "error" else json.loads(e.data)["outcome"] for e in ends]
    return next((errors[kind] for kind in reversed(kinds) if kind in errors), None)


@pytest.mark.timeout(120)
@pytest.mark.proves("P-AGUI-2", "P-AGUI-4", "P-AGUI-5", "P-AGUI-8", "P-AGUI-9")
def test_a_client_shows_what_we_believe_that_it_shows() -> None:
    histories = [made(seed) if seed % 4 else expired(made(seed)) for seed in range(HISTORIES)]
    told = [Told(h, version) for h in histories for version in VERSIONS]
    results = read_all(told, [[]] * len(told))
    for number, (expected, result) in enumerate(zip(told, results, strict=True)):
        where = (number // 2, expected.version)
        assert result["failure"] == failure_of(histories[number // 2]), where
        assert result["messages"] == expected.messages, where


@pytest.mark.timeout(120)
@pytest.mark.proves("P-AGUI-3", "P-SSE-11", "S25", "S31", "S32")
def test_a_client_that_comes_back_shows_what_the_journal_holds() -> None:
    histories = [made(seed) for seed in range(HISTORIES)]
    clean = [Told(list(survivors(h)), "current").messages for h in histories]
    cut = [Told(h[: len(h) // 2], "current").messages for h in histories]
    told = [Told(list(survivors(h)), "current", anew=True) for h in histories]
    results = read_all(told, cut)
    for seed, (result, expected) in enumerate(zip(results, clean, strict=True)):
        held = result["messages"]
        if not any(m["role"] == "reasoning" for m in expected):
            # No snapshot without reasoning takes any away, and here the thread has none to send.
            held = [m for m in held if m["role"] != "reasoning"]
        assert by_id(held) == by_id(expected), seed


@pytest.mark.proves("P-AGUI-9")
def test_a_client_that_saw_everything_taken_back_shows_what_one_does_that_did_not() -> None:
    for seed in range(HISTORIES):
        history = made(seed)
        rewound = Told(history, "current").messages
        assert by_id(rewound) == by_id(Told(list(survivors(history)), "current").messages), seed


@pytest.mark.proves("P-AGUI-4", "P-EVT-2")
def test_what_a_client_shows_is_what_the_journal_says() -> None:
    for seed in range(HISTORIES):
        history = made(seed)
        shown = {m["id"]: m["content"] for m in Told(history, "current").messages if says(m)}
        assert shown == dict(settled(history)), seed


def says(message: dict[str, Any]) -> bool:
    return message["role"] != "tool" and message["id"] != "u-1" and bool(message.get("content"))


def settled(history: History) -> Iterator[tuple[str, str]]:
    """Yield the id and the text of every message that stays."""
    for event in survivors(history):
        body = json.loads(event.data)
        if event.type == "message" and body["status"] != "discarded":
            message_id = f"{body['turn_id']}.{body['message_id']}"
            text = "".join(part["text"] for part in body["parts"])
            said = {message_id: text, f"{message_id}.reasoning": body.get("reasoning", "")}
            yield from ((name, words) for name, words in said.items() if words)


def by_id(messages: Messages) -> dict[str, Any]:
    """Drop the order, and the emptied reasoning that AG-UI has no way to take away."""
    empty = [m["id"] for m in messages if m["role"] == "reasoning" and not m["content"]]
    return {m["id"]: m for m in messages if m["id"] not in empty}
