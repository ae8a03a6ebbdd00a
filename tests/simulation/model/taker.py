"""A process without the lease: it takes over a turn whose owner it holds for dead, or opens the next turn.

Knows nothing of clocks: it may hold anybody for dead at any time, as often as the budget allows.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.model.log import Log
from tests.simulation.model.records import (
    ACQUIRE,
    OPENED,
    Event,
    Message,
    Record,
    is_own,
    writer_id,
)
from tests.simulation.model.state import (
    IDLE,
    REPLY,
    RETRY,
    UNKNOWN,
    Edge,
    State,
    Step,
    World,
)


def steps(world: World, state: State, index: int) -> Iterator[Step]:
    """Yield what a process may do next that is not the owner."""
    edge, name = state.edges[index], "AB"[index]
    if edge.wait == RETRY:
        yield Step((name, "gives the take-over up"), state.with_edge(index, edge.gone()))
    if edge.wait in (IDLE, RETRY) and len(state.net) < world.scope.in_flight:
        yield from _take(world, state, index)
    if edge.wait == REPLY and state.budget.timeout:
        waits = state.with_edge(index, edge._replace(wait=UNKNOWN)).spending("timeout")
        yield Step((name, "ACQUIRE times out: outcome unknown"), waits)
    if edge.wait == UNKNOWN:
        yield from _settle(world, state, index)


def _take(world: World, state: State, index: int) -> Iterator[Step]:
    edge, log = state.edges[index], state.log
    if log.done:
        if log.turn < world.scope.turns:
            yield _open_turn(state, index)
        return
    if edge.wait == IDLE and _believes_it_owns(world, state, index):
        owner = Edge(True, log.epoch, edge.life, len(log.slots), cancelled=log.stopped)
        label = ("AB"[index], "restarted, sees its own name: carries on in the same epoch")
        yield Step(label, state.with_edge(index, owner))
    vacant = _is_vacant(state)
    may = state.budget.takeover and log.epoch < world.scope.epochs
    if edge.wait == RETRY or vacant or may:
        free = vacant or edge.wait == RETRY
        spent = state if free else state.spending("takeover")
        for slot, epoch, base in _candidates(world, log):
            record = Record(ACQUIRE, epoch, writer_id(index, edge.life), base)
            yield _send(world, spent, index, slot=slot, record=record)


def _believes_it_owns(world: World, state: State, index: int) -> bool:
    me = writer_id(index, state.edges[index].life)
    return world.rules.writer_id == "per_host" and state.log.holder == me


def _is_vacant(state: State) -> bool:
    """Whether nobody drives the turn or is about to."""
    return not any(
        edge.epoch == state.log.epoch if edge.owner else edge.wait for edge in state.edges
    )


def _candidates(world: World, log: Log) -> list[tuple[int, int, int]]:
    """Return ``(slot, epoch, events before it)`` of the acquires that the taker may think right."""
    slots, reads = len(log.slots), world.rules.taker_reads
    tail = (slots + 1, log.epoch + 1, len(log.events))
    if reads == "prefix":
        prefixes = [log.prefix(n) for n in range(1, slots + 1)]
        return [(len(p.slots) + 1, p.epoch + 1, len(p.events)) for p in prefixes]
    if reads == "epoch_hint":
        hints = [(slots + 1, epoch + 1, len(log.events)) for epoch, _ in log.acquires[:-1]]
        return [tail, *hints]
    if reads == "slot_hint":
        return [tail, (slots + 2, log.epoch + 1, len(log.events))]
    return [tail]


def _send(world: World, state: State, index: int, *, slot: int, record: Record) -> Step:
    edge, me = state.edges[index], writer_id(index, state.edges[index].life)
    message = Message(me, slot, record)
    taker = Edge(
        owner=world.rules.acts_unconfirmed,
        epoch=record.epoch,
        life=edge.life,
        read=slot - 1,
        wait=REPLY,
        sent=message,
        cancelled=state.log.stopped,
    )
    label = ("AB"[index], "takes over: sends", record, "to slot", slot)
    return Step(label, state.sending(index, taker, message))


def _open_turn(state: State, index: int) -> Step:
    """Open the next turn and take the lease in one atomic append."""
    edge, log = state.edges[index], state.log
    me, epoch = writer_id(index, edge.life), log.epoch + 1
    record = Record(ACQUIRE, epoch, me, len(log.events), (Event(epoch, 0, OPENED),))
    message = Message(me, len(log.slots) + 1, record)
    opener = Edge(epoch=epoch, life=edge.life, read=len(log.slots), wait=REPLY, sent=message)
    label = ("AB"[index], "opens a turn: sends", record, "to slot", message.slot)
    return Step(label, state.sending(index, opener, message))


def _settle(world: World, state: State, index: int) -> Iterator[Step]:
    """Find out what became of the acquire: its slot says so."""
    edge, name = state.edges[index], "AB"[index]
    record, sent = state.log.at(edge.read + 1), edge.sent
    assert sent is not None
    by_content = world.rules.own_record == "content"
    lost = Edge(life=edge.life, wait=RETRY)
    if record is None:
        if len(state.net) < world.scope.in_flight:
            label = (name, "finds its slot free, resends the identical ACQUIRE")
            yield Step(label, state.sending(index, edge._replace(wait=REPLY), sent))
    elif not is_own(record, sent.record, by_content=by_content):
        lost_to = (name, "re-reads its slot:", record, "- lost the slot")
        yield Step(lost_to, state.with_edge(index, lost))
    elif world.rules.late_acquire_reads_on and state.log.epoch > edge.epoch:
        label = (name, "finds its ACQUIRE, reads on to the tail: superseded")
        yield Step(label, state.with_edge(index, lost))
    else:
        label = (name, "re-reads its slot: its ACQUIRE is there: owner")
        yield Step(label, state.with_edge(index, owner_after(world, edge, edge.read + 1)))


def owner_after(world: World, edge: Edge, slot: int) -> Edge:
    """Return the owner that a process becomes once it knows that its acquire is at the slot."""
    assert edge.sent is not None
    stage = ""
    if world.scope.attempts:
        stage = "starting" if edge.sent.record.events else "waiting"
    return edge._replace(owner=True, read=slot, wait=IDLE, sent=None, stage=stage)
