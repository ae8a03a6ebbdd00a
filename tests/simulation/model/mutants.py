"""The mutants: every rule of the protocol broken alone, and the property that the search then finds violated.

Knows nothing of how to search. A mutant that lives is a rule that nobody needs, or a model that cannot see why.
``HARMLESS`` holds the ones that are known to live, each with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.model.rules import Rules
from tests.simulation.model.state import Budget, Scope


@dataclass(frozen=True, slots=True)
class Mutant:
    """A protocol with one rule broken, and the smallest world known in which that shows."""

    name: str
    rules: Rules
    scope: Scope
    violates: str
    """The property, or why none is."""
    slow: bool = False
    """Whether it takes more than a second or two to be found."""


def _alone(budget: Budget, tokens_before: int = 1, tokens_after: int = 0) -> Scope:
    """Return the world of an owner that runs its agent itself."""
    return Scope(budget=budget, tokens_before=tokens_before, tokens_after=tokens_after)


def _runtime(budget: Budget, attempts: int = 3, turns: int = 1) -> Scope:
    """Return the world of an owner and a runtime. Its agent says nothing: what matters is the tool."""
    return Scope(budget=budget, tokens_before=0, attempts=attempts, turns=turns)


LOG = (
    Mutant(
        "a record met at one's slot is not obeyed",
        Rules(obeys=False),
        _alone(Budget(takeover=1)),
        "P1",
    ),
    Mutant(
        "an unknown append is sent again to the next slot",
        Rules(unknown_append="next_slot"),
        _alone(Budget(timeout=1)),
        "P1",
    ),
    Mutant(
        "an unknown append's events are appended again",
        Rules(unknown_append="appended_again"),
        _alone(Budget(timeout=1)),
        "P1",
    ),
    Mutant(
        "an unknown append is waited for for ever",
        Rules(unknown_append="awaited"),
        _alone(Budget(timeout=1)),
        "P7",
    ),
    Mutant(
        "the store overwrites",
        Rules(creates_only=False),
        _alone(Budget(takeover=1)),
        "P1",
    ),
    Mutant(
        "the store expires a record while an append to its slot is on its way",
        Rules(keeps_slots=False),
        _alone(Budget(takeover=1)),
        "P1",
    ),
    Mutant(
        "a resend carries what the buffer holds by then",
        Rules(resends="grown"),
        _alone(Budget(timeout=1)),
        "P2",
    ),
    Mutant(
        "a poll reads only the last record",
        Rules(polls="last_only"),
        _alone(Budget(takeover=1, cancel=1)),
        "P1",
    ),
    Mutant(
        "a record is one's own whoever wrote it",
        Rules(own_record="content"),
        _alone(Budget(crash=1, takeover=1)),
        "P1",
    ),
    Mutant(
        "a writer is named by its host, and carries on in its former epoch",
        Rules(writer_id="per_host"),
        _alone(Budget(crash=1)),
        "P3",
    ),
)

TAKING_OVER = (
    Mutant(
        "a taker counts the epoch from a hint",
        Rules(taker_reads="epoch_hint"),
        _alone(Budget(takeover=2)),
        "P1",
    ),
    Mutant(
        "a taker counts the slot from a hint",
        Rules(taker_reads="slot_hint"),
        _alone(Budget(takeover=1)),
        "P1",
    ),
    Mutant(
        "a late acquire counts although a newer one is in the log",
        Rules(late_acquire_reads_on=False),
        _alone(Budget(takeover=2, drop=1, timeout=1), tokens_before=2),
        "P3",
        slow=True,
    ),
    Mutant(
        "an owner acts before its acquire is known to be committed",
        Rules(acts_unconfirmed=True),
        _alone(Budget(crash=1, takeover=1)),
        "P3",
    ),
)

SHOWING = (
    Mutant(
        "a structural event is shown before it is committed",
        Rules(structural_waits=False),
        _alone(Budget(takeover=1)),
        "P4",
    ),
    Mutant(
        "an event's id is its seq alone",
        Rules(ids_name_epoch=False),
        _alone(Budget(takeover=1)),
        "P3",
    ),
    Mutant(
        "a rewind goes back to the log's length",
        Rules(rewind_to="length"),
        _alone(Budget(crash=1, takeover=1)),
        "P3",
    ),
    Mutant(
        "open streams are not resolved again",
        Rules(streams_resolve_again=False),
        _alone(Budget(takeover=1, drop=1)),
        "P3",
    ),
    Mutant(
        "a stale edge resolves a cursor from an epoch that it does not know",
        Rules(attaches_to="prefix"),
        _alone(Budget(takeover=1, drop=1)),
        "P4",
    ),
    Mutant(
        "a fenced owner's streams go on as if nothing had been taken back",
        Rules(fenced="follows_unresolved"),
        _alone(Budget(takeover=1)),
        "P3",
    ),
)

CANCELLING = (
    Mutant(
        "a cancel is a flag beside the log",
        Rules(cancel="flag"),
        _alone(Budget(cancel=1)),
        "P5",
    ),
    Mutant(
        "a cancel is acknowledged when it is sent",
        Rules(cancel="acked_when_sent"),
        _alone(Budget(cancel=1)),
        "P5",
    ),
    Mutant(
        "a cancel is acknowledged when its slot is taken",
        Rules(cancel="acked_when_met"),
        _alone(Budget(cancel=1)),
        "P8",
    ),
    Mutant(
        "a cancel handed to an owner is acknowledged at once",
        Rules(handed_cancel="acked_when_handed"),
        _alone(Budget(cancel=1, handed=1)),
        "P8",
    ),
    Mutant(
        "a cancel is appended although one is there",
        Rules(cancel_once=False),
        _alone(Budget(cancel=2)),
        "P8",
    ),
    Mutant(
        "a cancel names no turn",
        Rules(cancel_names_turn=False),
        _runtime(Budget(cancel=1), attempts=1, turns=2),
        "P10",
    ),
    Mutant(
        "a cancel leaves an uncommitted tool_start in the buffer",
        Rules(cancel_takes_back=False),
        _alone(Budget(cancel=1)),
        "P5",
    ),
)

TOOLS = (
    Mutant(
        "a tool does not wait for its tool_start",
        Rules(tool_waits=False),
        _alone(Budget()),
        "P2",
    ),
    Mutant(
        "a gate is opened before its tool_start is committed",
        Rules(tool_waits=False),
        _runtime(Budget()),
        "P2",
    ),
    Mutant(
        "a tool of unknown outcome is run again",
        Rules(unknown_tool="run_again"),
        _alone(Budget(crash=1)),
        "P2",
    ),
    Mutant(
        "an attempt is asked for before it is durable, and the runtime restarts",
        Rules(attempt_ahead=False),
        _runtime(Budget(takeover=1, suspension=1, restart=1)),
        "P2",
        slow=True,
    ),
    Mutant(
        "an attempt is asked for before it is durable, and the turn is cancelled",
        Rules(attempt_ahead=False),
        _runtime(Budget(takeover=1, suspension=1, cancel=1)),
        "P9",
        slow=True,
    ),
    Mutant(
        "a permission to run is good for ever",
        Rules(grant="for_ever"),
        _runtime(Budget(suspension=1, stream_break=1)),
        "P2",
    ),
    Mutant(
        "a gate that stayed shut is remembered by the attempt after next",
        Rules(gates_forgotten=False),
        _runtime(Budget(stream_break=2)),
        "P2",
    ),
    Mutant(
        "a runtime runs an attempt that is not newer than the last",
        Rules(refuses_old_attempts=False),
        _runtime(Budget(stream_break=2)),
        "P11",
    ),
    Mutant(
        "an acknowledgement opens the gate of whatever attempt waits",
        Rules(ack_names_attempt=False),
        _runtime(Budget(stream_break=1), attempts=2, turns=2),
        "P2",
    ),
    Mutant(
        "an acknowledgement opens a gate that was given up",
        Rules(suspension_shuts_gate=False),
        _runtime(Budget(suspension=1)),
        "P2",
    ),
    Mutant(
        "an acknowledgement opens the gate of a cancelled turn",
        Rules(cancel_shuts_gate=False),
        _runtime(Budget(cancel=1)),
        "P9",
    ),
    Mutant(
        "a tool is said not to have run although nobody knows",
        Rules(not_executed="guessed"),
        _runtime(Budget(cancel=1)),
        "P9",
    ),
)

MUTANTS = (*LOG, *TAKING_OVER, *SHOWING, *CANCELLING, *TOOLS)

HARMLESS = (
    Mutant(
        "a screen ahead of its own epoch's log is cut to the log",
        Rules(rewind_to="fork_always"),
        _alone(Budget(takeover=1, drop=1)),
        "only tokens are ahead of the log; they are shown twice, never differently",
    ),
    Mutant(
        "a writer is named by its host, but always acquires anew",
        Rules(writer_id="per_host_new_epoch"),
        _alone(Budget(crash=1)),
        "the epoch tells its lives apart",
    ),
    Mutant(
        "a stale edge resolves a cursor from an epoch that it knows",
        Rules(attaches_to="prefix_of_known_epoch"),
        _alone(Budget(takeover=1, drop=1)),
        "the stream is resolved again once the edge has read on",
    ),
    Mutant(
        "a taker has read only the log's beginning",
        Rules(taker_reads="prefix"),
        _alone(Budget(takeover=2)),
        "the slot after what it has read is taken, so it reads on",
    ),
    Mutant(
        "a resend carries what the buffer holds by then, and only what is found counts",
        Rules(resends="grown_trimmed"),
        _alone(Budget(takeover=1, timeout=1)),
        "reading the slot tells how much of the buffer it holds",
    ),
    Mutant(
        "a fenced owner's streams go on and are resolved again",
        Rules(fenced="follows"),
        _alone(Budget(takeover=1, drop=1)),
        "a new acquire resolves them; closing them as well spares an edge from believing its memory",
    ),
)
