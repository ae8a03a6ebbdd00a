"""Somebody on another edge who stops a turn: reads the log, appends a cancel, and says when it is certain.

Knows nothing of owners, except that a cancel may be handed to one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.model.records import (
    CANCEL,
    FIRST_CANCELLER,
    TOOL_START,
    Message,
    Record,
    newest_turn,
)
from tests.simulation.model.state import (
    ACKNOWLEDGED,
    HANDED,
    IN_DOUBT,
    QUIET,
    SENT,
    TOO_LATE,
    Canceller,
    State,
    Step,
    World,
    known,
)

NOBODY = -1  # a writer: who appended a cancel tells nothing


def steps(world: World, state: State) -> Iterator[Step]:
    """Yield what those who cancel may do next."""
    if world.rules.cancel == "flag":
        yield from _set_flag(state)
        return
    for index, canceller in enumerate(state.cancellers):
        if canceller.status == QUIET:
            if state.budget.cancel:
                yield from _wish(world, state, index)
            break  # they are alike: the next one waits until this one has begun
        yield from _go_on(world, state, index)


def _go_on(world: World, state: State, index: int) -> Iterator[Step]:
    canceller = state.cancellers[index]
    if canceller.status == IN_DOUBT:
        yield from _try(world, state, index)
    elif canceller.status == HANDED:
        yield from _ask_owner(state, index)
    elif canceller.status == SENT and state.budget.timeout:
        doubts = canceller._replace(status=IN_DOUBT)
        yield Step(("CANCEL times out",), _moved(state, index, doubts).spending("timeout"))


def _wish(world: World, state: State, index: int) -> Iterator[Step]:
    """Yield the ways in which somebody begins: for any turn there has been, perhaps late."""
    for turn in range(1, state.log.turn + 1):
        if turn == state.log.turn and state.log.done:
            continue  # whoever comes now finds it ended
        wishes = _moved(state.spending("cancel"), index, Canceller(IN_DOUBT, 0, turn))
        if world.rules.cancel == "acked_when_sent" and not _tool_started(state):
            wishes = wishes._replace(stopped_in_time=True)
        for step in _try(world, wishes, index):
            yield step._replace(label=(f"user {index} wants turn {turn} stopped:", *step.label))
        if state.budget.handed:
            yield from _hand(world, wishes.spending("handed"), index)


def _try(world: World, state: State, index: int) -> Iterator[Step]:
    """Read the log to its end, and append a cancel unless that is settled."""
    rules, log, canceller = world.rules, state.log, state.cancellers[index]
    turn = canceller.turn if rules.cancel_names_turn else log.turn
    if turn in log.cancelled and (rules.cancel_once or log.done):
        stopped = canceller._replace(status=ACKNOWLEDGED, slot=0)
        yield Step(("reads a CANCEL: acknowledged",), _moved(state, index, stopped))
    elif turn < log.turn or log.done:
        late = canceller._replace(status=TOO_LATE, slot=0)
        yield Step(("reads the terminal: nothing to cancel",), _moved(state, index, late))
    elif len(state.net) < world.scope.in_flight:
        # A slot beyond the log may be asked for again: it was free when it was read.
        slot = max(canceller.slot, len(log.slots) + 1)
        message = Message(FIRST_CANCELLER + index, slot, Record(CANCEL, 0, NOBODY, 0, turn=turn))
        sent = canceller._replace(status=SENT, slot=slot)
        yield Step(("sends CANCEL to slot", slot), _moved(state, index, sent).posting(message))


def _hand(world: World, state: State, index: int) -> Iterator[Step]:
    canceller = state.cancellers[index]
    for place, edge in enumerate(state.edges):
        turn = newest_turn(known(state.log, edge) + edge.buffer)
        if edge.owner and turn.number == canceller.turn and not turn.finished:
            handed = state.with_edge(place, edge._replace(asked=True))
            acked = world.rules.handed_cancel == "acked_when_handed"
            status = ACKNOWLEDGED if acked else HANDED
            waits = canceller._replace(status=status, slot=place)
            yield Step((f"user {index} asks", "AB"[place]), _moved(handed, index, waits))


def _ask_owner(state: State, index: int) -> Iterator[Step]:
    """Wait for the owner that took the cancel; if it lost the lease, do it oneself."""
    canceller = state.cancellers[index]
    owner, name = state.edges[canceller.slot], "AB"[canceller.slot]
    if owner.owner and owner.cancelled:
        stopped = canceller._replace(status=ACKNOWLEDGED, slot=0)
        yield Step((name, "tells that the CANCEL is committed"), _moved(state, index, stopped))
    elif state.log.done or not (owner.owner and owner.asked):
        doubts = canceller._replace(status=IN_DOUBT, slot=0)
        yield Step((name, "cannot tell: the canceller reads the log"), _moved(state, index, doubts))


def _set_flag(state: State) -> Iterator[Step]:
    if state.budget.cancel and not state.flagged and not state.log.done:
        in_time = state.stopped_in_time or not _tool_started(state)
        flagged = state.spending("cancel")._replace(flagged=True, stopped_in_time=in_time)
        yield Step(("a cancel flag is set elsewhere and acknowledged",), flagged)


def _tool_started(state: State) -> bool:
    return any(event.kind == TOOL_START for event in state.log.events)


def _moved(state: State, index: int, canceller: Canceller) -> State:
    return state.with_canceller(index, canceller)
