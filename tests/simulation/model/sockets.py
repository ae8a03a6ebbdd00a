"""How a process loses its browser: everything that may have been on the screen by then.

Knows nothing of why it does.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.model.state import (
    NOWHERE,
    Browser,
    Edge,
    State,
    Step,
    World,
    resolves_first,
    shown,
)

Label = tuple[object, ...]


def leave(world: World, state: State, index: int, after: Edge, label: Label) -> Iterator[Step]:
    """Yield the ends of the edge's streams when it becomes ``after``: more or less may have arrived."""
    moved = state.with_edge(index, after)
    if state.browser.edge != index:
        yield Step(label, moved)
        return
    screen, stream = state.browser.screen, shown(world.rules, state, index)
    lengths = [len(screen)]
    if not resolves_first(world.rules, state, index):
        lengths += range(len(screen) + 1, len(stream) + 1)
    for length in lengths:
        left = Browser(NOWHERE, screen + stream[len(screen) : length], 0)
        yield Step((*label, "- the browser had", length), moved._replace(browser=left))


def fence(world: World, state: State, index: int, label: Label) -> Iterator[Step]:
    """Yield what becomes of an owner that has met a newer acquire: it drops all it believed."""
    after = state.edges[index].gone()
    if world.rules.fenced == "closes_streams" or state.browser.edge != index:
        yield from leave(world, state, index, after, label)
        return
    moved, screen = state.with_edge(index, after), state.browser.screen
    stream = shown(world.rules, state, index)
    longest = max(len(stream), len(screen))
    if resolves_first(world.rules, state, index):
        longest = len(screen)
    for length in range(len(screen), longest + 1):
        browser = state.browser._replace(screen=screen + stream[len(screen) : length])
        if world.rules.fenced == "follows_unresolved":
            browser = browser._replace(resolved_epoch=state.log.epoch)
        yield Step(label, moved._replace(browser=browser))
