"""An owner whose agent runs in a runtime: attempts, gates and grants, as in ``edge.core.writer``.

Knows nothing of what the runtime does meanwhile (``runtime``), except what it streams. One structural event is
under way at a time, as in ``agent``.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.model import runtime
from tests.simulation.model.agent import numbered
from tests.simulation.model.records import (
    DONE,
    NOT_EXECUTED,
    OPENED,
    RESUMED,
    SUSPENDED,
    TOKEN,
    TOOL_END,
    TOOL_START,
    UNKNOWN,
    Turn,
    newest_turn,
    starts_tool,
    without_tool_starts,
    writer_id,
)
from tests.simulation.model.state import IDLE, Call, Edge, Run, State, Step, World, known

# Where the attempt stands, as ``edge.core.writer.Stage``.
WAITING, STARTING, RUNNING, OVER = "waiting", "starting", "running", "over"


def stopped(state: State, index: int, edge: Edge, *, takes_back: bool) -> State:
    """Return the state once the owner has met a cancel: uncommitted tool starts go, the runtime is told."""
    buffer = without_tool_starts(edge.buffer) if takes_back else edge.buffer
    shut = edge.shut and buffer == edge.buffer
    moved = state.with_edge(index, edge._replace(buffer=buffer, shut=shut))
    if edge.stage != RUNNING:
        return moved
    turn = newest_turn(known(state.log, edge) + buffer)
    return moved._replace(
        runtime=state.runtime.calls(Call(runtime.STOP, turn.number, turn.attempt))
    )


def steps(world: World, state: State, index: int) -> Iterator[Step]:
    """Yield what the owner may do next for its turn."""
    edge = state.edges[index]
    turn = newest_turn(known(state.log, edge) + edge.buffer)
    free = not (edge.buffer and edge.buffer[-1].structural)
    if edge.stage == WAITING and free:
        yield _next_attempt(world, state, index, turn)
    elif edge.stage == STARTING and (free or not world.rules.attempt_ahead):
        yield _begin(world, state, index, turn)
    elif edge.stage == RUNNING:
        yield from _run(world, state, index, turn)
    elif edge.stage == OVER and turn.number < world.scope.turns and _rests(edge):
        yield _open_turn(state, index)


def _rests(edge: Edge) -> bool:
    return not edge.buffer and edge.wait == IDLE


def _put(state: State, index: int, edge: Edge, kinds: str) -> State:
    """Number events behind the edge's buffer."""
    before = known(state.log, edge)
    for kind in kinds:
        edge = edge._replace(buffer=(*edge.buffer, numbered(edge, before, kind)))
    return state.with_edge(index, edge)


def _open_turn(state: State, index: int) -> Step:
    """Open the next turn: a process that still holds the session needs no acquire."""
    edge = state.edges[index]
    fresh = Edge(True, edge.epoch, edge.life, edge.read, stage=STARTING)
    return Step(("AB"[index], "opens a turn"), _put(state, index, fresh, OPENED))


def _next_attempt(world: World, state: State, index: int, turn: Turn) -> Step:
    edge = state.edges[index]
    if edge.cancelled or turn.attempt >= world.scope.attempts:
        return _end(world, state, index, turn)
    granted = edge.shut or turn.pending
    if world.rules.grant == "for_ever":
        granted = granted or (turn.was_pending and not turn.ended)
    starting = edge._replace(stage=STARTING, grant=granted)
    label = ("AB"[index], "numbers attempt", turn.attempt + 1, "granted" if granted else "")
    return Step(label, _put(state, index, starting, RESUMED))


def _end(world: World, state: State, index: int, turn: Turn) -> Step:
    """Write what the runtime can no longer say, and the terminal event."""
    edge = state.edges[index]
    loose = ""
    if turn.started and not turn.ended:
        provable = edge.shut or turn.pending or world.rules.not_executed == "guessed"
        loose = NOT_EXECUTED if provable else UNKNOWN
    over = edge._replace(stage=OVER, shut=False)
    return Step(
        ("AB"[index], "ends the turn:", loose + DONE), _put(state, index, over, loose + DONE)
    )


def _begin(world: World, state: State, index: int, turn: Turn) -> Step:
    edge = state.edges[index]
    if edge.cancelled:
        return _end(world, state, index, turn)
    phase = runtime.NEW
    if turn.started:
        phase = runtime.ENDED if turn.ended else runtime.RELEASED if edge.grant else runtime.UNTOLD
    me = writer_id(index, edge.life)
    call = Call(runtime.BEGIN, turn.number, turn.attempt, me, phase)
    shut = edge.shut and not world.rules.gates_forgotten
    running = edge._replace(stage=RUNNING, shut=shut, grant=False)
    moved = state.with_edge(index, running)._replace(runtime=state.runtime.calls(call))
    return Step(("AB"[index], "asks for attempt", turn.attempt, "-", phase), moved)


def _run(world: World, state: State, index: int, turn: Turn) -> Iterator[Step]:
    edge, name = state.edges[index], "AB"[index]
    me = writer_id(index, edge.life)
    run = state.runtime.runs[turn.number - 1]
    mine = run is not None and (run.attempt, run.sender) == (turn.attempt, me)
    free = not (edge.buffer and edge.buffer[-1].structural)
    if run is not None and mine and free:
        yield from _stream(world, state, index, turn=turn, run=run)
    durable = not starts_tool(edge.buffer) or not world.rules.tool_waits
    if edge.shut and durable and not edge.cancelled:
        call = Call(runtime.ACK, turn.number, turn.attempt)
        opened = state.with_edge(index, edge._replace(shut=False))
        yield Step((name, "opens the gate"), opened._replace(runtime=state.runtime.calls(call)))
    asked = any(
        (call.kind, call.turn, call.attempt) == (runtime.BEGIN, turn.number, turn.attempt)
        and call.sender == me
        for call in state.runtime.wire
    )
    waiting = state.with_edge(index, edge._replace(stage=WAITING))
    if not mine and not asked:
        yield Step((name, "sees its stream end"), waiting)
    elif state.budget.stream_break:
        yield Step((name, "loses its stream"), waiting.spending("stream_break"))
    if edge.cancelled and free:
        yield _end(world, state, index, turn)


def _stream(world: World, state: State, index: int, *, turn: Turn, run: Run) -> Iterator[Step]:
    """Yield what the attempt may say next, as the owner numbers it."""
    edge, name = state.edges[index], "AB"[index]
    for kind, phase in _said(world, edge, turn, run):
        after = edge
        if kind == TOOL_START:
            after = edge._replace(shut=True)
        elif kind == DONE:
            after = edge._replace(stage=OVER)
        elif phase is None:
            after = edge._replace(stage=WAITING)
        left = None if phase is None else run._replace(phase=phase)
        moved = _put(state, index, after, kind)
        moved = moved._replace(runtime=state.runtime.with_run(turn.number, left))
        yield Step((name, "numbers", kind or "nothing"), moved)


def _said(world: World, edge: Edge, turn: Turn, run: Run) -> Iterator[tuple[str, str | None]]:
    """Yield ``(kind, phase afterwards)``; ``None`` ends the attempt."""
    match run.phase:
        case runtime.NEW if not edge.cancelled:
            if turn.kinds.count(TOKEN) < world.scope.tokens_before:
                yield TOKEN, runtime.NEW
            yield TOOL_START, runtime.GATED
        case runtime.HELD:
            # What a cancel has taken back is not waited for.
            yield (SUSPENDED if turn.started else ""), None
        case runtime.STOPPED:
            yield (NOT_EXECUTED if turn.started else ""), runtime.ENDED
        case runtime.UNTOLD:
            yield UNKNOWN, runtime.ENDED
        case runtime.RETURNED:
            yield TOOL_END, runtime.ENDED
        case runtime.ENDED:
            yield DONE, None
            talks = turn.ended and not edge.cancelled
            if talks and turn.since_end.count(TOKEN) < world.scope.tokens_after:
                yield TOKEN, runtime.ENDED
