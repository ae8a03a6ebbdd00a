"""Users at work: each asks one thing after the other, watches the answers, and stops some of them.

Knows nothing of faults; a user asserts only that everything is answered in the end.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from tests.faults.asking import Asker
from tests.faults.client import FOLLOW_SECONDS, Client
from tests.faults.scene import Scene, Step
from tests.support.history import History
from tests.support.processes import POLL_SECONDS

CANCEL_SHARE = 0.2
TOOL_SECONDS = 0.5
SILENCE_SECONDS = 60.0
"""Several take-overs in a row, each of whose owners died before it said anything."""


def some_steps(chance: random.Random) -> list[Step]:
    """Return text and tools of every kind, in turn."""
    steps: list[Step] = []
    for number in range(chance.randint(2, 4)):
        steps.append({"say": "word", "words": chance.randint(5, 40), "word_ms": 20})
        steps.append(
            chance.choice(
                [
                    {"tool": "append_note", "args": {"text": str(number)}},
                    {"sleep_tool": TOOL_SECONDS, "safety": "idempotent"},
                    {"sleep_tool": TOOL_SECONDS, "safety": "unsafe"},
                    {"parallel": [{"tool": "append_note", "args": {"text": "p"}}] * 2},
                ]
            )
        )
    return steps


@dataclass(slots=True)
class User:
    """Somebody with one session and one tab."""

    scene: Scene
    chance: random.Random
    client: Client
    asker: Asker
    steps: Callable[[random.Random], list[Step]] = some_steps
    cancel_share: float = CANCEL_SHARE

    @classmethod
    async def arrive(cls, scene: Scene, chance: random.Random) -> User:
        """Open a session at one of the edges."""
        return cls.of(scene, random.Random(chance.random()), await scene.session())

    @classmethod
    def of(cls, scene: Scene, chance: random.Random, session_id: str) -> User:
        """Return a user of a session that is there, who has asked nothing yet."""
        asker = Asker(
            scene=scene,
            session_id=session_id,
            choose=lambda: chance.choice(scene.ports),
            patience_seconds=FOLLOW_SECONDS,
        )
        return cls(scene, chance, Client(session_id), asker)

    async def work(self, over: asyncio.Event) -> None:
        """Ask until it is over; the last answer is watched to its end."""
        while not over.is_set():
            await self.ask_and_watch()

    async def ask_and_watch(self) -> None:
        """Ask one thing, and watch its answer to the end or stop it on the way."""
        turn_id = await self.asker.ask(self.steps(self.chance))
        following = asyncio.create_task(self._follow(turn_id))
        try:
            if self.chance.random() < self.cancel_share:
                await pass_time(self.chance.random() * 2)
                await self.asker.stop(turn_id)
            await following
        finally:
            following.cancel()

    async def history(self) -> History:
        """Return all that is known of this user's session, once the last answer was watched to its end."""
        return await self.scene.history(self.client, over=True, **self.asker.answers)

    async def _follow(self, turn_id: str) -> None:
        await follow(self.scene, self.chance, self.client, lambda: self._has_seen_the_end(turn_id))

    def _has_seen_the_end(self, turn_id: str) -> bool:
        return self.client.finished and turn_id in self.client.screen[-1].data


async def follow(
    scene: Scene, chance: random.Random, client: Client, done: Callable[[], bool]
) -> None:
    """Come back to any edge, again and again, until it is done.

    Raises:
        AssertionError: nothing came for ``SILENCE_SECONDS``, over however many connections.
    """
    began = monotonic()
    while not done():
        with suppress(TimeoutError):
            async with asyncio.timeout(SILENCE_SECONDS):
                await client.try_watch(chance.choice(scene.ports))
        silence = monotonic() - max([began, *client.heard_at[-1:]])
        assert silence < SILENCE_SECONDS, f"{silence:.0f} s of silence after {client.types[-5:]}"
        await asyncio.sleep(POLL_SECONDS)


async def pass_time(seconds: float) -> None:
    """Let time pass, where time itself is the fault."""
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        await asyncio.sleep(POLL_SECONDS)
