"""The agent runtime as a process of its own: one run per turn, a gate before the tool, a fence of attempts.

Knows nothing of the log. Calls reach it late, in any order, or never.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.model.state import Call, Run, Runtime, State, Step, World

# Calls.
BEGIN, ACK, STOP = "begin", "ack", "stop"

# Where the tool call of a run stands.
NEW = "new"  # it has not been made
GATED = "gated"  # it waits for an acknowledgement
HELD = "held"  # its gate was shut for good: the attempt suspends
STOPPED = "stopped"  # its gate was shut for good: the turn is cancelled
RELEASED = "released"  # it may run
RETURNED = "returned"  # it has run
UNTOLD = "untold"  # an earlier attempt started it, and nobody knows whether it ran
ENDED = "ended"  # its outcome is told


def steps(world: World, state: State) -> Iterator[Step]:
    """Yield what may reach the runtime next, and what it may do."""
    runtime = state.runtime
    for place, call in enumerate(runtime.wire):
        if place and runtime.wire[place - 1] == call:
            continue
        rest = runtime.wire[:place] + runtime.wire[place + 1 :]
        arrived = state._replace(runtime=runtime._replace(wire=rest))
        told = ("the runtime gets", call.kind, call.turn, call.attempt, call.phase)
        yield Step(told, _obey(world, arrived, call))
    for turn, run in enumerate(runtime.runs, start=1):
        if run is not None:
            yield from _go_on(state, turn, run)
    if state.budget.restart and any(runtime.seen):
        forgetful = Runtime((None,) * len(runtime.runs), (0,) * len(runtime.seen), runtime.wire)
        again = state.spending("restart")._replace(runtime=forgetful)
        yield Step(("the runtime restarts",), again)


def _go_on(state: State, turn: int, run: Run) -> Iterator[Step]:
    runtime = state.runtime
    if run.phase == RELEASED:
        late = run.attempt < runtime.seen[turn - 1]
        fault = "P11 an attempt acted after a newer one had been admitted" if late else None
        returned = runtime.with_run(turn, run._replace(phase=RETURNED))
        label = ("attempt", run.attempt, "of turn", turn, "RUNS THE TOOL")
        yield Step(label, _ran(state, turn)._replace(runtime=returned), fault)
    elif run.phase == GATED and state.budget.suspension:
        held = runtime.with_run(turn, run._replace(phase=HELD))
        yield Step(
            ("attempt", run.attempt, "waits no longer: it suspends"),
            state.spending("suspension")._replace(runtime=held),
        )


def _ran(state: State, turn: int) -> State:
    runs = list(state.ledger)
    runs[turn - 1] = min(runs[turn - 1] + 1, 2)
    return state._replace(ledger=tuple(runs))


def _obey(world: World, state: State, call: Call) -> State:
    if call.kind == BEGIN:
        return _admit(world, state, call)
    for turn, run in enumerate(state.runtime.runs, start=1):
        meant = run is not None and (turn, run.attempt) == (call.turn, call.attempt)
        anybody = call.kind == ACK and not world.rules.ack_names_attempt
        if run is None or not (meant or anybody):
            continue
        if call.kind == STOP:
            return _shut(state, turn, run)
        if run.phase == GATED:
            released = run._replace(phase=RELEASED)
            return state._replace(runtime=state.runtime.with_run(turn, released))
        if _opens_anyway(world, run):
            return _ran(state, turn)
    return state


def _admit(world: World, state: State, call: Call) -> State:
    runtime, place = state.runtime, call.turn - 1
    if call.attempt <= runtime.seen[place] and world.rules.refuses_old_attempts:
        return state
    seen = list(runtime.seen)
    seen[place] = max(seen[place], call.attempt)
    run = Run(call.attempt, call.sender, call.phase)
    return state._replace(runtime=runtime.with_run(call.turn, run)._replace(seen=tuple(seen)))


def _shut(state: State, turn: int, run: Run) -> State:
    """Return the state after a stop: a call at its gate will not run, one that was released may."""
    phase = {GATED: STOPPED, NEW: ENDED}.get(run.phase, run.phase)
    return state._replace(runtime=state.runtime.with_run(turn, run._replace(phase=phase)))


def _opens_anyway(world: World, run: Run) -> bool:
    if run.phase == HELD:
        return not world.rules.suspension_shuts_gate
    return run.phase == STOPPED and not world.rules.cancel_shuts_gate


def without_vain(world: World, state: State) -> State:
    """Return the state without the calls that the runtime will refuse whenever they arrive."""
    runtime, rules = state.runtime, world.rules
    strict = rules.refuses_old_attempts and rules.ack_names_attempt
    if not runtime.wire or state.budget.restart or not strict:
        return state
    wire = tuple(
        call
        for call in runtime.wire
        if call.attempt + (call.kind != BEGIN) > runtime.seen[call.turn - 1]
    )
    if len(wire) == len(runtime.wire):
        return state
    return state._replace(runtime=runtime._replace(wire=wire))
