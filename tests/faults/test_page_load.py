"""A page that is drawn from a snapshot and goes on with the stream misses and repeats nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.faults.client import Client, saw_events
from tests.faults.scene import Scene
from tests.support.http_client import ask

STEPS = (
    {"say": "word", "words": 40, "word_ms": 20},
    {"tool": "calculate", "args": {"expression": "1 + 1"}},
    {"say": "other", "words": 20, "word_ms": 20},
)


async def snapshot(scene: Scene, session_id: str, at: int) -> dict[str, Any]:
    answer = await ask(scene.ports[at], "GET", f"/v1/sessions/{session_id}")
    assert answer.status == 200, answer
    return dict(answer.json)


def drawn(page: dict[str, Any], client: Client) -> list[tuple[str, str]]:
    """Return ``(id, text)`` of each message and the calls, as the page shows them in the end."""
    shown: dict[str, str] = {}
    for item in page["turns"][0]["items"]:
        subject = item.get("message_id") if item["type"] == "message" else item["call_id"]
        parts = item.get("parts", [{"text": item.get("text", "")}])
        shown[subject] = "".join(part["text"] for part in parts) + item.get("outcome", "")
    for event in client.screen:
        body = json.loads(event.data)
        if event.type == "token":
            shown[body["message_id"]] = shown.get(body["message_id"], "") + body["text"]
        elif event.type == "message":
            text = "".join(part["text"] for part in body["parts"])
            # A page that missed a token would show another text until now.
            assert shown[body["message_id"]] == text
        elif event.type in ("tool_start", "tool_end"):
            shown[body["call_id"]] = body.get("outcome", "")
    return list(shown.items())


@pytest.mark.proves("P-HTTP-9", "T44", "S01", "S25")
async def test_a_page_loaded_amid_the_tokens_misses_and_repeats_nothing(standing: Scene) -> None:
    first = await standing.started(*STEPS)
    pages: list[tuple[dict[str, Any], Client]] = []
    while not first.finished:
        await first.watch(standing.ports[0], saw_events(7))
        page = await snapshot(standing, first.session_id, at=len(pages) % 2)
        reader = Client(first.session_id, page["cursor"])
        pages.append((page, reader))
    whole = Client(first.session_id)
    await whole.follow(standing.ports[0])
    for number, (page, reader) in enumerate(pages):
        await reader.watch(standing.ports[number % 2])
        seq = int(page["cursor"].partition("-")[2])
        assert reader.screen == whole.screen[seq:]
        assert drawn(page, reader) == drawn(pages[-1][0], pages[-1][1])
    await standing.judge(first, whole, *(reader for _, reader in pages))
