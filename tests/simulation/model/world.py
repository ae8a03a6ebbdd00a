"""The world's next step: somebody's, in any order.

Knows nothing of what must hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.model import (
    agent,
    attempts,
    browser,
    canceller,
    owner,
    runtime,
    store,
    taker,
)
from tests.simulation.model.sockets import leave
from tests.simulation.model.state import State, Step, World


def steps(world: World, state: State) -> Iterator[Step]:
    """Yield everything that may happen next."""
    for index, edge in enumerate(state.edges):
        if edge.owner:
            driver = attempts if world.scope.attempts else agent
            yield from driver.steps(world, state, index)
            yield from owner.steps(world, state, index)
        else:
            yield from taker.steps(world, state, index)
        if state.budget.crash and (edge.owner or edge.wait):
            starts = int(world.rules.writer_id == "per_start")
            killed = state.spending("crash")
            yield from leave(world, killed, index, edge.gone(starts), ("AB"[index], "kill -9"))
    yield from store.steps(world, state)
    yield from canceller.steps(world, state)
    yield from browser.steps(world, state)
    if world.scope.attempts:
        yield from runtime.steps(world, state)


def settled(world: World, state: State) -> State:
    """Return the state without messages that make no difference, so that equal states are equal."""
    return runtime.without_vain(world, store.without_vain(world, state))
