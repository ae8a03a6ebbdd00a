"""The AI SDK's readers take every history that a turn can have, and show what the journal holds in the end."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from edge.core.cursor import START
from edge.core.event import TERMINAL, Event
from edge.core.recap import Recap
from edge.ports import MustReplay
from edge.wire.ai_sdk import V6, V7, Major, TurnEncoder
from tests.clients.ai_sdk_chat import PACKAGES
from tests.clients.histories import History, Maker, survivors
from tests.clients.script import answer_of

MAJORS = {"v6": V6, "v7": V7}
HISTORIES = 150
STATES = {"succeeded": "output-available"}


@dataclass(frozen=True)
class Told:
    """A turn as one stream, and whether that stream came to the turn's end."""

    stream: str
    whole: bool


def tell(history: History, major: Major, known: Sequence[Event]) -> Told:
    """Tell a turn to a reader that comes when ``known`` is in the log."""
    recap = Recap(turn_id(known), START, tuple(known), finished=False, waiting=())
    encoder = TurnEncoder(recap, 0, major=major)
    said = b": ping\n"
    try:
        for step in history:
            said += encoder.event(step) if isinstance(step, Event) else encoder.rewind(step)
    except MustReplay:
        return Told(said.decode(), whole=False)
    ends = isinstance(history[-1], Event) and history[-1].type in TERMINAL
    return Told(said.decode(), whole=ends and b'"finishReason":"tool-calls"' not in said)


def turn_id(events: Sequence[Event]) -> str:
    return str(json.loads(events[0].data)["turn_id"])


def structural(history: History) -> list[Event]:
    return [event for event in survivors(history) if event.structural]


def made(seed: int) -> History:
    return Maker(random.Random(seed)).play(1)


def joined(history: History, at: int) -> History:
    """Return what a reader sees that comes after ``at`` steps: the log so far, and then what happens."""
    return [*survivors(history[:at]), *history[at:]]


def streams(history: History, major: Major) -> list[Told]:
    """Return the turn as seen live, by who came in its midst, and by who came at the end."""
    chance = random.Random(len(history))
    at = chance.randint(1, len(history))
    return [
        tell(history, major, structural(history[:1])),
        tell(joined(history, at), major, structural(history[:at])),
        tell([*survivors(history)], major, structural(history)),
    ]


def expected(history: History) -> tuple[list[tuple[str, str]], dict[str, str]]:
    texts: list[tuple[str, str]] = []
    calls: dict[str, str] = {}
    for event in survivors(history):
        body = json.loads(event.data)
        if event.type == "message" and body["role"] == "agent" and body["status"] != "discarded":
            said = "".join(part["text"] for part in body["parts"])
            texts += [*thoughts(body.get("reasoning", "")), ("text", said)]
        elif event.type == "tool_end":
            calls[body["call_id"]] = STATES.get(body["outcome"], "output-error")
    return sorted(pair for pair in texts if pair[1]), calls


def thoughts(text: str) -> list[tuple[str, str]]:
    """Return reasoning word by word: where it goes on after text, a client has it in two parts."""
    return [("reasoning", word) for word in text.split()]


def shown(message: dict[str, Any]) -> tuple[list[tuple[str, str]], dict[str, str]]:
    texts = [("text", p["text"]) for p in message["parts"] if p["type"] == "text"]
    for part in message["parts"]:
        texts += thoughts(part["text"]) if part["type"] == "reasoning" else []
    calls = {p["toolCallId"]: p["state"] for p in message["parts"] if p["type"] == "dynamic-tool"}
    assert all(p["state"] == "done" for p in message["parts"] if p["type"] in ("text", "reasoning"))
    return sorted(texts), calls


@pytest.mark.timeout(120)
@pytest.mark.proves(
    "P-AI-6", "P-AI-7", "P-AI-8", "P-AI-9", "S25", "S31", "S32", "P-EVT-2", "P-SSE-11"
)
def test_whenever_a_client_comes_it_shows_what_the_journal_holds() -> None:
    histories = [made(seed) for seed in range(HISTORIES)]
    work: list[dict[str, str]] = []
    wanted: list[History] = []
    for history in histories:
        for name, major in MAJORS.items():
            told = streams(history, major)
            assert told[-1].whole, "a replay of a turn that is over can be told to its end"
            for one in told:
                if one.whole:
                    work.append({"packageName": PACKAGES[name], "stream": one.stream})
                    wanted.append(history)
    for history, result in zip(wanted, answer_of("ai_sdk_fold.mjs", work, "ai"), strict=True):
        failed = isinstance(history[-1], Event) and history[-1].type == "error"
        assert result["failure"] == ("runtime_error" if failed else None)
        assert shown(result["message"]) == expected(history)


@pytest.mark.proves("P-AI-6", "P-SSE-5")
def test_where_nothing_was_taken_back_everybody_is_told_the_same_bytes() -> None:
    compared = 0
    for seed in range(HISTORIES * 3):
        history: History = [*survivors(made(seed))]
        live = tell(history, V7, structural(history[:1]))
        if "reset-step" in live.stream or not live.whole:
            continue
        for at in range(1, len(history) + 1):
            assert tell(history, V7, structural(history[:at])) == live
        compared += 1
    assert compared > HISTORIES / 10


@pytest.mark.proves("P-AI-7")
def test_major_7_can_be_told_every_history_as_it_happens() -> None:
    for seed in range(HISTORIES):
        history = made(seed)
        told = tell(history, V7, structural(history[:1]))
        assert told.whole or '"finishReason":"tool-calls"' in told.stream
