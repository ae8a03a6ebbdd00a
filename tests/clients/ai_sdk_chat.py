"""How a test drives a chat of the AI SDK, and reads what it shows.

Knows nothing of servers; the chat itself is ``ai_sdk.mjs``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.clients.script import NodeScript, State

PACKAGES = {"v7": "ai", "v6": "ai-previous"}
"""By the major in the path of an edge."""


async def call(chat: NodeScript, name: str, *args: object) -> None:
    await chat.tell({"call": name, "args": args})


async def send(chat: NodeScript, words: str = "Hi") -> None:
    await call(chat, "sendMessage", {"text": words})


def ended(times: int = 1) -> Callable[[State], bool]:
    """Return whether so many streams have come to an end, whatever end."""
    return lambda state: len(state["finishes"]) >= times


def shows(words: str) -> Callable[[State], bool]:
    return lambda state: words in texts(state)


def answer(state: State) -> list[dict[str, Any]]:
    """Return the parts of the newest message, which must be the agent's."""
    assert state["messages"][-1]["role"] == "assistant"
    return [part for part in state["messages"][-1]["parts"] if part["type"] != "step-start"]


def texts(state: State) -> str:
    """Return what the agent's newest message says; nothing while the user's is the newest."""
    newest = state["messages"][-1:]
    parts = [part for m in newest if m["role"] == "assistant" for part in m["parts"]]
    return "".join(part["text"] for part in parts if part["type"] == "text")
