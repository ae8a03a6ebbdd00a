"""The owner's way with the log: it appends, settles what became of that, and obeys what it meets.

Knows nothing of what it writes (``agent``, ``attempts``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.simulation.model import attempts
from tests.simulation.model.records import (
    ACQUIRE,
    CANCEL,
    EVENTS,
    Message,
    Record,
    is_own,
    newest_turn,
    without_tool_starts,
    writer_id,
)
from tests.simulation.model.sockets import fence
from tests.simulation.model.state import (
    IDLE,
    REPLY,
    UNKNOWN,
    Edge,
    State,
    Step,
    World,
    known,
    tool_after,
)


def steps(world: World, state: State, index: int) -> Iterator[Step]:
    """Yield what an owner may do next with the log."""
    edge, name = state.edges[index], "AB"[index]
    if edge.wait == IDLE and len(state.net) < world.scope.in_flight:
        yield from _append(state, index)
    if edge.wait == REPLY and state.budget.timeout:
        waits = state.with_edge(index, edge._replace(wait=UNKNOWN)).spending("timeout")
        yield Step((name, "append times out: outcome unknown"), waits)
    if edge.wait == UNKNOWN:
        yield from _settle(world, state, index)
    elif edge.wait == IDLE and state.log.at(edge.read + 1) is not None:
        yield from _poll(world, state, index)
    elif edge.wait == REPLY and state.log.epoch > edge.epoch and world.rules.obeys:
        label = (name, "polls: sees a newer ACQUIRE while its append is in flight: fenced")
        yield from fence(world, state, index, label)
    if state.flagged and not edge.cancelled and edge.wait == IDLE:
        stopped = edge._replace(buffer=without_tool_starts(edge.buffer), cancelled=True)
        yield Step((name, "polls the flag: sees the cancel"), state.with_edge(index, stopped))


def _append(state: State, index: int) -> Iterator[Step]:
    edge = state.edges[index]
    me, committed = writer_id(index, edge.life), known(state.log, edge)
    wanted = edge.asked and not edge.cancelled
    if wanted and not newest_turn(committed + edge.buffer).finished:
        turn = newest_turn(committed).number
        record = Record(CANCEL, edge.epoch, me, len(committed), turn=turn)
    elif edge.buffer:
        record = Record(EVENTS, edge.epoch, me, len(committed), edge.buffer)
    else:
        return
    message = Message(me, edge.read + 1, record)
    label = ("AB"[index], "sends", record, "to slot", message.slot)
    yield Step(label, state.sending(index, edge._replace(wait=REPLY, sent=message), message))


def _settle(world: World, state: State, index: int) -> Iterator[Step]:
    """Find out what became of an append: its slot says so."""
    edge, rules = state.edges[index], world.rules
    sent, room = edge.sent, len(state.net) < world.scope.in_flight
    assert sent is not None
    holds_events = sent.record.kind == EVENTS
    send_again = partial(_send_again, state, index)
    if rules.unknown_append == "next_slot" and holds_events:
        if room:
            again = sent._replace(slot=sent.slot + 1)
            yield send_again(edge._replace(read=sent.slot), again, "sends the same to slot")
    elif (
        rules.unknown_append == "appended_again" and holds_events and state.log.epoch == edge.epoch
    ):
        if room:
            record = sent.record._replace(base=len(state.log.events))
            again = Message(sent.sender, len(state.log.slots) + 1, record)
            moved = edge._replace(read=len(state.log.slots))
            yield send_again(moved, again, "appends the batch again at slot")
    elif rules.unknown_append == "awaited":
        return
    elif state.log.at(edge.read + 1) is not None:
        yield from read_slot(world, state, index)
    elif room and rules.resends != "frozen" and holds_events:
        again = sent._replace(record=sent.record._replace(events=edge.buffer))
        yield send_again(edge, again, "resends what its buffer holds by now to slot")
    elif room:
        yield send_again(edge, sent, "finds its slot free, resends the identical record to slot")


def _send_again(state: State, index: int, edge: Edge, message: Message, what: str) -> Step:
    waits = edge._replace(wait=REPLY, sent=message)
    return Step(("AB"[index], what, message.slot), state.sending(index, waits, message))


def _poll(world: World, state: State, index: int) -> Iterator[Step]:
    edge, newest = state.edges[index], state.log.slots[-1]
    if world.rules.polls == "last_only" and newest is not None and newest.kind == CANCEL:
        buffer = without_tool_starts(edge.buffer)
        jumped = edge._replace(read=len(state.log.slots), buffer=buffer, sent=None, cancelled=True)
        yield Step(("AB"[index], "polls: jumps to the last record"), state.with_edge(index, jumped))
    elif world.rules.obeys:
        yield from read_slot(world, state, index)


def read_slot(world: World, state: State, index: int) -> Iterator[Step]:
    """Yield what the owner makes of the record at the slot after the last one it knows."""
    edge, name, rules = state.edges[index], "AB"[index], world.rules
    record, sent = state.log.at(edge.read + 1), edge.sent
    if record is None:
        return
    past = edge._replace(read=edge.read + 1, wait=IDLE, sent=None)
    by_content = rules.own_record == "content"
    if sent is not None and rules.resends != "frozen" and _looks_sent(record, sent.record):
        found = record if rules.resends == "grown_trimmed" else sent.record
        taken = (name, "finds its epoch and name, takes", found, "as committed")
        yield Step(taken, committed(world, state, index, past, record=found))
    elif sent is not None and is_own(record, sent.record, by_content=by_content):
        yield Step(
            (name, "re-reads its slot: own record, committed"),
            committed(world, state, index, past, record=record),
        )
    elif not rules.obeys:
        label = (name, "does not obey", record, "and goes to the next slot")
        yield Step(label, state.with_edge(index, past))
    elif record.kind == CANCEL:
        yield Step((name, "reads", record), obey_cancel(world, state, index, past))
    elif _of_former_life(world, record, edge, writer_id(index, edge.life)):
        yield Step((name, "reads", record, "by its former life"), state.with_edge(index, past))
    else:
        label = (name, "reads", record, f"at slot {edge.read + 1}: fenced, drops its buffer")
        yield from fence(world, state, index, label)


def _looks_sent(record: Record, sent: Record) -> bool:
    return record.kind == sent.kind == EVENTS and record[:3] == sent[:3]


def _of_former_life(world: World, record: Record, edge: Edge, me: int) -> bool:
    named_by_host = world.rules.writer_id == "per_host"
    same = record.kind == EVENTS and record.epoch == edge.epoch and record.writer == me
    return named_by_host and same


def committed(world: World, state: State, index: int, edge: Edge, *, record: Record) -> State:
    """Return the state once the owner knows that its own record is in the log.

    ``edge`` has read past the record already.
    """
    if record.kind == ACQUIRE:
        return state.with_edge(index, edge)
    if record.kind == CANCEL:
        return obey_cancel(world, state, index, edge)
    tool = tool_after(edge, record.events)
    buffer = edge.buffer[len(record.events) :]
    return state.with_edge(index, edge._replace(buffer=buffer, tool=tool))


def obey_cancel(world: World, state: State, index: int, edge: Edge) -> State:
    """Return the state once the owner knows that its turn was cancelled."""
    stopped = edge._replace(cancelled=True, asked=False)
    return attempts.stopped(state, index, stopped, takes_back=world.rules.cancel_takes_back)
