"""What agents do in a run: a script per turn, drawn from the seed, the same in every attempt.

Knows nothing of runtimes. Only the accidents differ between attempts: crashes, tidy ends that are none,
drains. All of it takes place in virtual time.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from edge.ports import RuntimeEnded
from tests.simulation.attempt import Attempt, Suspend
from tests.simulation.weather import Weather


@dataclass(frozen=True, slots=True)
class Say:
    """Stream a message of so many words."""

    message_id: str
    words: int
    every_seconds: float


@dataclass(frozen=True, slots=True)
class Use:
    """Run tools at once: ``(call id, seconds, replay safety)``."""

    calls: tuple[tuple[str, float, str], ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """Wait for a person."""

    call_id: str


Step = Say | Use | Ask


class Playwright:
    """Draws the scripts of a run and plays them."""

    def __init__(self, seed: str, weather: Weather, *, accidents: float) -> None:
        self._seed = seed
        self._weather = weather
        self._accidents = accidents
        self._takes = itertools.count(1)

    def script_of(self, turn_id: str) -> Sequence[Step]:
        """Return what the turn's agent does if nothing happens to it."""
        chance = random.Random(f"{self._seed}/script/{turn_id}")
        kinds = chance.choices(("say", "use", "both", "ask"), (5, 5, 3, 1), k=chance.randint(1, 4))
        return [_draw(chance, kind, f"{turn_id[:4]}{n}") for n, kind in enumerate(kinds)]

    async def play(self, attempt: Attempt) -> None:
        """Run the turn's script, unless an accident ends the attempt."""
        take = next(self._takes)
        for step in self.script_of(attempt.turn_id):
            self._stumble()
            match step:
                case Say():
                    await self._say(attempt, step, take)
                case Use():
                    self._weather.counts["tools_in_parallel"] += len(step.calls) > 1
                    await attempt.tools(step.calls)
                case Ask():
                    attempt.ask(step.call_id)
            if attempt.cancelled:
                return

    async def _say(self, attempt: Attempt, step: Say, take: int) -> None:
        # Another attempt says something else: what was lost with its writer cannot pass unseen.
        words = [f"{take}.{n} " for n in range(step.words)]
        if self._weather.hit(self._accidents):
            self._weather.counts["crashes_mid_text"] += 1
            attempt.babble(step.message_id, words[: len(words) // 2])
            await asyncio.sleep(step.every_seconds)
            raise RuntimeEnded("runtime_error", retryable=True)
        await attempt.say(step.message_id, words, step.every_seconds)

    def _stumble(self) -> None:
        if not self._weather.hit(self._accidents):
            return
        kind = self._weather.chance.choice(("crash", "drain"))
        self._weather.counts[f"{kind}es" if kind == "crash" else "drains_of_runtime"] += 1
        if kind == "drain":
            raise Suspend("draining")
        raise RuntimeEnded("runtime_unavailable", retryable=True)


def _draw(chance: random.Random, kind: str, name: str) -> Step:
    match kind:
        case "say":
            return Say(f"m{name}", chance.randint(2, 12), chance.choice((0.02, 0.1, 0.4)))
        case "ask":
            return Ask(f"a{name}")
        case _:
            count = 1 if kind == "use" else chance.randint(2, 3)
            return Use(tuple(_tool(chance, f"c{name}.{n}") for n in range(count)))


def _tool(chance: random.Random, call_id: str) -> tuple[str, float, str]:
    seconds = chance.choice((0.0, 0.1, 1.0, 4.0))
    return call_id, seconds, chance.choice(("unsafe", "unsafe", "idempotent"))
