"""The store: it creates a record or says that the slot is taken, now, later, again, or never.

Knows nothing of what the records mean.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.model.owner import committed
from tests.simulation.model.records import ACQUIRE, FIRST_CANCELLER, Message
from tests.simulation.model.state import (
    ACKNOWLEDGED,
    IDLE,
    IN_DOUBT,
    UNKNOWN,
    State,
    Step,
    World,
    awaits,
)
from tests.simulation.model.taker import owner_after


def steps(world: World, state: State) -> Iterator[Step]:
    """Yield the arrivals of every append that is on its way."""
    for place, message in enumerate(state.net):
        if place and state.net[place - 1] == message:
            continue
        rest = state.net[:place] + state.net[place + 1 :]
        yield from _arrive(world, state, message, rest)
        if not world.rules.keeps_slots and state.log.at(message.slot) is not None:
            label = ("the store expires the record at slot", message.slot)
            yield Step(label, state._replace(log=state.log.expire(message.slot)))


def _arrive(
    world: World, state: State, message: Message, rest: tuple[Message, ...]
) -> Iterator[Step]:
    free = state.log.at(message.slot) is None
    taken = not free and world.rules.creates_only
    log = state.log if taken else state.log.put(message.slot, message.record)
    what = "ALREADY_EXISTS" if taken else "creates" if free else "OVERWRITES"
    awaited = awaits(state, message)
    label = ("store:" if awaited else "store, LATE:", what, message.record, "at slot", message.slot)
    after = state._replace(log=log, net=rest)
    yield Step(label, _answer(world, after, message, taken=taken) if awaited else after)
    if state.budget.redelivery:
        again = state._replace(log=log).spending("redelivery")
        yield Step((*label, "and will see it again, reply lost"), again)


def _answer(world: World, state: State, message: Message, *, taken: bool) -> State:
    """Return the state once the sender has its answer."""
    if message.sender >= FIRST_CANCELLER:
        index = message.sender - FIRST_CANCELLER
        done = not taken or world.rules.cancel == "acked_when_met"
        status, slot = (ACKNOWLEDGED if done else IN_DOUBT), (message.slot if taken else 0)
        moved = state.cancellers[index]._replace(status=status, slot=slot)
        return state.with_canceller(index, moved)
    index = message.sender & 1
    edge = state.edges[index]
    if taken:
        return state.with_edge(index, edge._replace(wait=UNKNOWN))
    if message.record.kind == ACQUIRE:
        return _acquired(world, state, index, message.slot)
    past = edge._replace(read=message.slot, wait=IDLE, sent=None)
    return committed(world, state, index, past, record=message.record)


def _acquired(world: World, state: State, index: int, slot: int) -> State:
    owner = owner_after(world, state.edges[index], slot)
    after = state.with_edge(index, owner)
    browser = state.browser
    if browser.edge == index and not world.rules.streams_resolve_again:
        after = after._replace(browser=browser._replace(resolved_epoch=owner.epoch))
    return after


def without_vain(world: World, state: State) -> State:
    """Return the state without the appends that can neither succeed nor be missed."""
    rules = world.rules
    if not state.net or not (rules.creates_only and rules.keeps_slots):
        return state
    net = tuple(m for m in state.net if state.log.at(m.slot) is None or awaits(state, m))
    return state if len(net) == len(state.net) else state._replace(net=net)
