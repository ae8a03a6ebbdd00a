"""Asks until somebody answers, and keeps the answers: what must hold from then on.

Knows nothing of faults, and nothing of what is shown. A request that nobody answers is sent again with the same
key, to whichever edge is chosen next.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import h11

from tests.faults.scene import Scene, Step
from tests.support.http_client import Answer, post
from tests.support.processes import POLL_SECONDS

Choice = Callable[[], int]
"""Returns the port of the edge to ask next."""
Miss = Answer | OSError | h11.RemoteProtocolError
"""What came of a try that decided nothing: a 503, or no answer."""


async def insist(
    choose: Choice,
    target: str,
    body: object,
    *headers: tuple[str, str],
    seconds: float,
    note: Callable[[Miss], None] = lambda _: None,
) -> Answer:
    """Post until somebody decides; ``note`` is told of every try that came to nothing.

    Raises:
        AssertionError: nobody decided for so long.
    """
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    answer = await post(choose(), target, body, *headers)
                except (OSError, h11.RemoteProtocolError) as error:
                    note(error)
                else:
                    if answer.status != 503:
                        return answer
                    note(answer)
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise AssertionError(f"nobody decides about {target}") from None


@dataclass(slots=True, kw_only=True)
class Asker:
    """Who asks things of one session."""

    scene: Scene
    session_id: str
    choose: Choice
    patience_seconds: float
    note: Callable[[Miss], None] = lambda _: None
    posts: list[tuple[str, str]] = field(default_factory=list)
    """``(idempotency key, turn id)`` of every answered POST."""
    cancels: list[str] = field(default_factory=list)
    """Turns whose cancel was answered 202."""
    late_cancels: list[tuple[str, int]] = field(default_factory=list)
    """Turns whose cancel was told that they had ended, and the log's last slot after that."""

    async def ask(self, steps: Sequence[Step]) -> str:
        """Start a turn; return its id."""
        key = f"{self.session_id[:12]}-turn-{len(self.posts) + 1}"
        body = {"input": json.dumps(steps), "agent": "script"}
        answer = await self.insist("/turns", body, ("Idempotency-Key", key))
        assert answer.status == 202, answer
        turn_id = str(answer.json["turn_id"])
        self.posts.append((key, turn_id))
        return turn_id

    async def stop(self, turn_id: str) -> None:
        """Cancel a turn."""
        answer = await self.insist(f"/turns/{turn_id}/cancel", {})
        if answer.status == 202:
            self.cancels.append(turn_id)
            return
        assert (answer.status, answer.json["state"]) == (200, "done"), answer
        records = await self.scene.store.records(self.session_id)
        self.late_cancels.append((turn_id, records[-1].slot))

    async def insist(self, path: str, body: object, *headers: tuple[str, str]) -> Answer:
        """Ask something of the session, and return what was decided. Raises as ``insist``."""
        return await insist(
            self.choose,
            f"/v1/sessions/{self.session_id}{path}",
            body,
            *headers,
            seconds=self.patience_seconds,
            note=self.note,
        )

    @property
    def answers(self) -> dict[str, Any]:
        """What a ``History`` holds of all this."""
        return {
            "posts": self.posts,
            "cancels": self.cancels,
            "late_cancels": self.late_cancels,
        }
