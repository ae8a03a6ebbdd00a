"""An owner that runs its agent and its tool itself: the smallest world in which the log can be tried.

Knows nothing of attempts; ``attempts`` and ``runtime`` are the same with a runtime of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.model.records import (
    DONE,
    TOKEN,
    TOOL_END,
    TOOL_START,
    UNKNOWN,
    Event,
    Events,
    newest_turn,
    starts_tool,
)
from tests.simulation.model.state import OPEN, RAN, SHUT, Edge, State, Step, World, known


def steps(world: World, state: State, index: int) -> Iterator[Step]:
    """Yield what the agent may do next: say something, or run its tool."""
    edge, name = state.edges[index], "AB"[index]
    before = known(state.log, edge)
    for kind in _next_kinds(world, edge, before):
        event = numbered(edge, before, kind)
        place = len(before) + len(edge.buffer) + 1
        label = (name, "numbers", event, "as seq", place)
        yield Step(label, state.with_edge(index, edge._replace(buffer=(*edge.buffer, event))))
    if _may_run(world, edge):
        yield Step((name, "RUNS THE TOOL"), ran(state, index))
    if world.rules.unknown_tool == "run_again" and edge.tool == SHUT and not edge.buffer:
        kinds = newest_turn(before).kinds
        if TOOL_START in kinds and TOOL_END not in kinds and DONE not in kinds:
            yield Step((name, "RUNS THE TOOL AGAIN"), ran(state, index))


def numbered(edge: Edge, before: Events, kind: str, waiting: Events = ()) -> Event:
    """Return the edge's next event; ``waiting`` are those that precede it beyond its buffer."""
    number = sum(event.epoch == edge.epoch for event in (*before, *edge.buffer, *waiting))
    return Event(edge.epoch, number, kind)


def ran(state: State, index: int) -> State:
    """Return the state after the owner has run its tool."""
    (runs,) = state.ledger
    moved = state.with_edge(index, state.edges[index]._replace(tool=RAN))
    return moved._replace(ledger=(min(runs + 1, 2),))


def _may_run(world: World, edge: Edge) -> bool:
    if edge.tool == OPEN:
        return True
    return not world.rules.tool_waits and edge.tool == SHUT and starts_tool(edge.buffer)


def _next_kinds(world: World, edge: Edge, before: Events) -> str:
    """Return the kinds of event that may come next. One structural event is under way at a time."""
    if edge.buffer and edge.buffer[-1].structural:
        return ""
    turn = newest_turn(before + edge.buffer)
    if turn.finished:
        return ""
    if not turn.started:
        if edge.cancelled:
            return DONE
        talks = turn.kinds.count(TOKEN) < world.scope.tokens_before
        return TOOL_START + TOKEN if talks else TOOL_START
    if not turn.ended:
        if edge.tool == RAN:
            return TOOL_END
        marks = edge.tool == SHUT and world.rules.unknown_tool == "marked"
        return UNKNOWN if marks else ""
    talks = not edge.cancelled and turn.since_end.count(TOKEN) < world.scope.tokens_after
    return DONE + TOKEN if talks else DONE
