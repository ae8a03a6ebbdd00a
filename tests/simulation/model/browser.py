"""A browser: it connects to either edge with a cursor, is shown events, and loses its connection.

Knows nothing of a screen's correctness (``properties``). Events travel in no time: what an edge may show counts
as shown whenever the connection ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.model.log import Log
from tests.simulation.model.records import Events
from tests.simulation.model.rules import Rules
from tests.simulation.model.state import (
    NOWHERE,
    Browser,
    State,
    Step,
    World,
    resolves_first,
    serving_epoch,
    shown,
)


def steps(world: World, state: State) -> Iterator[Step]:
    """Yield what may happen to the browser next."""
    browser = state.browser
    if browser.edge == NOWHERE:
        for index in range(2):
            yield from _connect(world, state, index)
    elif resolves_first(world.rules, state, browser.edge):
        yield _resolve_again(world, state)
    elif state.budget.drop:
        screen, stream = browser.screen, shown(world.rules, state, browser.edge)
        for length in range(len(screen), max(len(stream), len(screen)) + 1):
            left = Browser(NOWHERE, screen + stream[len(screen) : length], 0)
            after = state.spending("drop")._replace(browser=left)
            yield Step(("the socket drops; the browser had", length), after)


def survivors(rules: Rules, screen: Events, log: Log) -> Events:
    """Return what a cursor's resolution leaves of a screen (the attach table of PROTOCOL.md)."""
    if not rules.ids_name_epoch or not screen:
        return screen
    epoch = screen[-1].epoch
    if epoch > log.epoch:
        return ()  # from a future that this log does not have: reset
    if epoch == log.epoch:
        # Perhaps ahead of the log: held until the log gets there.
        return screen[: len(log.events)] if rules.rewind_to == "fork_always" else screen
    if rules.rewind_to == "length":
        return screen[: len(log.events)]
    return screen[: min(base for later, base in log.acquires if later > epoch)]


def _blame(before: Events, after: Events) -> str | None:
    lost = any(event.structural for event in before[len(after) :])
    return "P4 a structural event is taken back" if lost else None


def _connect(world: World, state: State, index: int) -> Iterator[Step]:
    rules, edge, screen = world.rules, state.edges[index], state.browser.screen
    logs = [state.log]
    if rules.attaches_to != "tail":
        logs = [state.log.prefix(slots) for slots in range(1, len(state.log.slots) + 1)]
    for log in logs:
        unknown = bool(screen) and screen[-1].epoch > log.epoch
        if unknown and rules.attaches_to == "prefix_of_known_epoch":
            continue
        kept, after = survivors(rules, screen, log), state
        if edge.owner and rules.ids_name_epoch and edge.epoch < log.epoch:
            after = state.with_edge(index, edge.gone())  # it learns that it is fenced
        elif edge.owner and rules.attaches_to != "tail" and log.epoch < edge.epoch:
            continue  # an owner knows at least its own acquire
        label = ("the browser connects to", "AB"[index], "and keeps", len(kept), "of", len(screen))
        connected = Browser(index, kept, log.epoch)
        yield Step(label, after._replace(browser=connected), _blame(screen, kept))


def _resolve_again(world: World, state: State) -> Step:
    browser = state.browser
    edge = state.edges[browser.edge]
    log = state.log.prefix(edge.read) if edge.owner else state.log
    kept = survivors(world.rules, browser.screen, log)
    resolved = browser._replace(screen=kept, resolved_epoch=serving_epoch(state, browser.edge))
    label = ("AB"[browser.edge], "resolves the open stream again: keeps", len(kept))
    return Step(label, state._replace(browser=resolved), _blame(browser.screen, kept))
