"""People: somebody who starts turns, some who stop them, somebody who answers questions.

Knows nothing of streams. They use any edge, try again with the same key when nobody answers, and click
twice. All in virtual time.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from edge.core.errors import ClientFault, ToolCallNotFound, TurnInProgress
from edge.core.event import SUSPENDED
from edge.core.requests import OnDisconnect, TurnRequest, TurnStarted
from edge.sessions.registry import Registry
from tests.simulation.edges import Edge
from tests.simulation.judge import Judge
from tests.simulation.loop import SimulatedLoop
from tests.simulation.store import Store
from tests.support.history import Kind
from tests.support.house import UID, request

T = TypeVar("T")

LOOK_SECONDS = 0.5
ANSWER = '{"outcome":"succeeded","result_json":"true"}'


@dataclass(slots=True, kw_only=True)
class Crowd:
    """Everybody who uses one session."""

    loop: SimulatedLoop
    chance: random.Random
    session_id: str
    store: Store
    judge: Judge
    choose: Callable[[], Edge]
    counts: Counter[str]
    answers: bool
    """Whether somebody answers questions, or leaves the turn to wait."""
    ends_alone: float
    """How often a turn is to end with its last viewer."""
    acting: int = 0
    """How many are about to do something."""

    async def use(self, gaps_seconds: list[float]) -> None:
        """Start one turn after the other, with a pause before each, and see each end or park."""
        for number, gap in enumerate(gaps_seconds):
            await asyncio.sleep(gap)
            turn_id = await self._start(f"key-{number:012d}")
            if turn_id is None or not await self._settled(turn_id):
                return

    async def _start(self, key: str) -> str | None:
        policy: OnDisconnect = "cancel" if self.chance.random() < self.ends_alone else "continue"
        asked = request(f"say {key}", key, on_disconnect=policy)
        if self.chance.random() < 0.25:
            self.counts["double_posts"] += 1
            self._aside(self._post(asked))
        started = await self._post(asked)
        if started is None:
            return None
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            self._aside(self._cancel(started.turn_id))
        return started.turn_id

    def _aside(self, act: Coroutine[Any, Any, object]) -> None:
        """Let somebody act beside whoever starts the turns."""

        def acted(_task: asyncio.Task[object]) -> None:
            self.acting -= 1

        self.acting += 1
        self.loop.spawn_outside(act).add_done_callback(acted)

    async def _post(self, asked: TurnRequest) -> TurnStarted | None:
        async def post(registry: Registry) -> TurnStarted:
            return await registry.start_turn(UID, self.session_id, asked)

        try:
            started = await self._insist(post)
        except TurnInProgress:
            return None
        self.counts["posts_replayed" if started.replayed else "posts"] += 1
        self.judge.post_answered(asked.idempotency_key, started)
        return started

    async def _cancel(self, turn_id: str) -> None:
        async def cancel(registry: Registry) -> str:
            return await registry.cancel(UID, self.session_id, turn_id)

        await asyncio.sleep(self.chance.uniform(0.0, 8.0))
        answer = await self._insist(cancel)
        self.counts[f"cancels_{answer}"] += 1
        self.judge.cancel_answered(turn_id, answer)

    async def _insist(self, work: Callable[[Registry], Awaitable[T]]) -> T:
        while (result := await self.choose().insist(work)) is None:
            self.counts["calls_tried_again"] += 1
            await asyncio.sleep(self.chance.uniform(0.1, 1.0))
        return result

    async def _settled(self, turn_id: str) -> bool:
        """Wait for the turn's end, answering what it asks; ``False`` if it waits for nobody."""
        while turn_id not in self.store.ended:
            await asyncio.sleep(LOOK_SECONDS)
            question = self.question()
            if question is None:
                continue
            if not self.answers:
                return False
            await self._answer(turn_id, question)
        return True

    def question(self) -> str | None:
        """Return the call that the session waits for, if it waits for a person."""
        newest = self.store.newest()
        if newest is None or newest.type != SUSPENDED:
            return None
        body = json.loads(newest.data)
        return body["pending_call_ids"][0] if body["reason"] == "input_required" else None

    async def _answer(self, turn_id: str, call_id: str) -> None:
        async def resolve(registry: Registry) -> bool:
            await registry.resolve(UID, self.session_id, turn_id, call_id, ANSWER)
            return True

        try:
            await self._insist(resolve)
            self.counts["answers"] += 1
        except ToolCallNotFound:
            self.counts["answers_too_late"] += 1
        except ClientFault as fault:
            self.judge.accuse(Kind.OTHER, f"an answer to {call_id} was refused: {fault.code}")
