"""One state of the model's world, and what follows from it without a step.

Knows nothing of steps. States are values: tuples all through, logs compared by identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tests.simulation.model.log import Log, log_of
from tests.simulation.model.records import (
    ACQUIRE,
    EVENTS,
    FIRST_CANCELLER,
    OPENED,
    TOOL_START,
    Event,
    Events,
    Message,
    Record,
    writer_id,
)
from tests.simulation.model.rules import Rules

# What an edge waits for.
IDLE, REPLY, UNKNOWN, RETRY = range(4)

# What an owner that runs the tool itself knows of it.
SHUT, OPEN, RAN = range(3)

# Where a canceller stands.
QUIET, SENT, IN_DOUBT, ACKNOWLEDGED, TOO_LATE, HANDED = range(6)

NOWHERE = -1


class Budget(NamedTuple):
    """How many faults and wishes of each kind are still to come."""

    crash: int = 0
    takeover: int = 0
    """Take-overs of an owner that is alive."""
    drop: int = 0
    timeout: int = 0
    cancel: int = 0
    redelivery: int = 0
    stream_break: int = 0
    """Attempts whose stream is cut although the runtime lives."""
    suspension: int = 0
    restart: int = 0
    """Restarts of the runtime, which forgets what it has seen."""
    handed: int = 0
    """How many of the cancels may be handed to an owner."""

    def without(self, kind: str) -> Budget:
        return self._replace(**{kind: getattr(self, kind) - 1})


NO_FAULTS = Budget()


class Edge(NamedTuple):
    """One process of two, as owner, taker or neither. A fresh one knows nothing."""

    owner: bool = False
    epoch: int = 0
    life: int = 0
    read: int = 0
    """Slots that it has read or written: all that it knows of the log."""
    buffer: Events = ()
    """Events that have a seq and are not known to be committed."""
    wait: int = IDLE
    sent: Message | None = None
    tool: int = SHUT
    cancelled: bool = False
    """Whether it knows that its turn was cancelled."""
    stage: str = ""
    """Of the attempt, if a runtime runs it."""
    shut: bool = False
    """Whether a gate of this attempt is known to be shut."""
    grant: bool = False
    """Whether the next attempt is told to run the call."""
    asked: bool = False
    """Whether a cancel was handed to it."""

    def gone(self, starts: int = 0) -> Edge:
        """Return the process without its memory, after so many starts."""
        return Edge(life=self.life + starts)


class Canceller(NamedTuple):
    """Somebody who wants a turn stopped."""

    status: int = QUIET
    slot: int = 0
    turn: int = 0


class Browser(NamedTuple):
    """What a user has on the screen."""

    edge: int = 0
    """Whose stream is open, or ``NOWHERE``."""
    screen: Events = ()
    resolved_epoch: int = 1
    """Epoch that the open stream was last resolved in."""


class Call(NamedTuple):
    """A request on its way to the runtime: ``begin``, ``ack`` or ``stop``."""

    kind: str
    turn: int
    attempt: int
    sender: int = 0
    phase: str = ""
    """For ``begin``: what the history says of the call."""


class Run(NamedTuple):
    """An attempt in the runtime."""

    attempt: int
    sender: int
    """The process that reads its stream."""
    phase: str


class Runtime(NamedTuple):
    """The runtime's process, and what is on its way to it."""

    runs: tuple[Run | None, ...] = ()
    """The run of each turn."""
    seen: tuple[int, ...] = ()
    """The highest attempt seen of each turn."""
    wire: tuple[Call, ...] = ()

    def with_run(self, turn: int, run: Run | None) -> Runtime:
        return self._replace(runs=(*self.runs[: turn - 1], run, *self.runs[turn:]))

    def calls(self, call: Call) -> Runtime:
        return self._replace(wire=tuple(sorted((*self.wire, call))))


class State(NamedTuple):
    """Everything there is. ``net`` holds the appends on their way to the store, sorted."""

    log: Log
    net: tuple[Message, ...]
    edges: tuple[Edge, Edge]
    cancellers: tuple[Canceller, ...]
    browser: Browser
    ledger: tuple[int, ...]
    """How often the tool of each turn has run; two stands for more."""
    stopped_in_time: bool
    """Whether a cancel outside the log was acknowledged before the tool_start was in it (mutants)."""
    flagged: bool
    """Whether a flag beside the log asks for a stop (a mutant's cancel)."""
    runtime: Runtime
    budget: Budget

    def with_edge(self, index: int, edge: Edge) -> State:
        a, b = self.edges
        return self._replace(edges=(a, edge) if index else (edge, b))

    def with_canceller(self, index: int, canceller: Canceller) -> State:
        others = self.cancellers
        return self._replace(cancellers=(*others[:index], canceller, *others[index + 1 :]))

    def posting(self, message: Message) -> State:
        return self._replace(net=tuple(sorted((*self.net, message))))

    def sending(self, index: int, edge: Edge, message: Message) -> State:
        """Return the state in which an edge has sent an append."""
        return self.with_edge(index, edge).posting(message)

    def spending(self, kind: str) -> State:
        return self._replace(budget=self.budget.without(kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """How far a search goes: what is bounded besides the faults."""

    budget: Budget = NO_FAULTS
    tokens_before: int = 1
    tokens_after: int = 0
    """Tokens before a turn's tool starts and after it has ended."""
    attempts: int = 0
    """Attempts of a turn at most, by a runtime of its own; 0: the owner runs agent and tool itself."""
    turns: int = 1
    in_flight: int = 4
    epochs: int = 3
    """No live owner is taken over beyond this epoch."""

    def __post_init__(self) -> None:
        assert self.attempts or self.turns == 1, "a second turn needs a runtime"


@dataclass(frozen=True, slots=True)
class World:
    """What does not change during a search."""

    rules: Rules
    scope: Scope

    def start(self) -> State:
        """Return the first state: A owns the session, and its turn's first record is in the log."""
        scope, me = self.scope, writer_id(0, 0)
        slots = [Record(ACQUIRE, 1, me, 0)]
        if scope.attempts:
            slots.append(Record(EVENTS, 1, me, 0, (Event(1, 0, OPENED),)))
        owner = Edge(True, 1, read=len(slots), stage="starting" if scope.attempts else "")
        runtime = (
            Runtime((None,) * scope.turns, (0,) * scope.turns) if scope.attempts else Runtime()
        )
        return State(
            log=log_of(tuple(slots)),
            net=(),
            edges=(owner, Edge()),
            cancellers=(Canceller(),) * scope.budget.cancel,
            browser=Browser(),
            ledger=(0,) * scope.turns,
            stopped_in_time=False,
            flagged=False,
            runtime=runtime,
            budget=scope.budget,
        )


class Step(NamedTuple):
    """Something that may happen next."""

    label: tuple[object, ...]
    state: State
    fault: str | None = None
    """The property that the step itself violates."""


def known(log: Log, edge: Edge) -> Events:
    """Return the committed events that an edge knows."""
    return log.events[: log.lengths[min(edge.read, len(log.slots))]]


def shown(rules: Rules, state: State, index: int) -> Events:
    """Return what the edge's open streams have been given, or may be at any moment."""
    edge = state.edges[index]
    if not edge.owner:
        return state.log.events
    committed = known(state.log, edge)
    if rules.structural_waits:
        for place, event in enumerate(edge.buffer):
            if event.structural:
                return committed + edge.buffer[:place]
    return committed + edge.buffer


def serving_epoch(state: State, index: int) -> int:
    """Return the newest epoch that the edge knows of."""
    edge = state.edges[index]
    return edge.epoch if edge.owner else state.log.epoch


def resolves_first(rules: Rules, state: State, index: int) -> bool:
    """Whether an open stream at the edge is resolved again before it is given anything more."""
    resolves = rules.streams_resolve_again and rules.ids_name_epoch
    return resolves and serving_epoch(state, index) > state.browser.resolved_epoch


def awaits(state: State, message: Message) -> bool:
    """Whether the sender of an append still waits for its answer."""
    if message.sender >= FIRST_CANCELLER:
        canceller = state.cancellers[message.sender - FIRST_CANCELLER]
        return canceller.status == SENT and canceller.slot == message.slot
    index = message.sender & 1
    edge = state.edges[index]
    waits = edge.wait == REPLY and edge.sent == message
    return waits and writer_id(index, edge.life) == message.sender


def tool_after(edge: Edge, committed: Events) -> int:
    """Return what an owner knows of its tool once the events are known to be committed."""
    opens = edge.tool == SHUT and not edge.stage
    opens = opens and any(event.kind == TOOL_START for event in committed)
    return OPEN if opens else edge.tool
