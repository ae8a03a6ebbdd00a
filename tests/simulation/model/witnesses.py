"""What a search comes across: proof that a world without faults is not a world in which nothing happens.

Knows nothing of what is right.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tests.simulation.model.records import TOKEN
from tests.simulation.model.state import State, World
from tests.simulation.model.world import settled, steps


def happenings(world: World) -> set[str]:
    """Return what is said of any step, numbers and records left out."""
    return {
        " ".join(str(part) for part in label if isinstance(part, str) and part)
        for _, label in _walk(world)
    }


def endings(world: World) -> set[tuple[str, int]]:
    """Return the turns that there may have been: ``(kinds without tokens, how often the tool ran)``."""
    found = set()
    for state, _ in _walk(world):
        if state.log.done:
            kinds = "".join(event.kind for event in state.log.events)
            found.add((kinds.replace(TOKEN, ""), sum(state.ledger)))
    return found


def _walk(world: World) -> Iterator[tuple[State, tuple[object, ...]]]:
    start = world.start()
    seen, waiting = {start}, deque([start])
    while waiting:
        for step in steps(world, waiting.popleft()):
            state = settled(world, step.state)
            yield state, step.label
            if state not in seen:
                seen.add(state)
                waiting.append(state)
