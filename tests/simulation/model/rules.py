"""The protocol's rules as switches: the defaults are the protocol, anything else is a mutant.

Knows nothing of how a rule is carried out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Each field names a rule and, in its other values, the ways in which it is broken."""

    # What a browser shows and resumes from.
    ids_name_epoch: bool = True
    structural_waits: bool = True
    """A structural event is committed before it is shown (P-LOG-7)."""
    streams_resolve_again: bool = True
    """An open stream is resolved again at a newer acquire (P-RES-2)."""
    rewind_to: Literal["fork", "fork_always", "length"] = "fork"
    attaches_to: Literal["tail", "prefix_of_known_epoch", "prefix"] = "tail"
    """A cursor of a higher epoch makes the server read on (P-LOG-6)."""
    fenced: Literal["closes_streams", "follows", "follows_unresolved"] = "closes_streams"
    """P-LOG-12."""

    # Appending.
    writer_id: Literal["per_start", "per_host", "per_host_new_epoch"] = "per_start"
    """P-LOG-15."""
    own_record: Literal["all", "content"] = "all"
    """What makes a record one's own: writer, epoch and content (P-LOG-2)."""
    obeys: bool = True
    """A record met at one's slot is obeyed before anything else (P-LOG-9)."""
    creates_only: bool = True
    keeps_slots: bool = True
    """A record outlives every append that is still on its way to its slot."""
    unknown_append: Literal["same_slot", "next_slot", "appended_again", "awaited"] = "same_slot"
    """P-LOG-9."""
    resends: Literal["frozen", "grown", "grown_trimmed"] = "frozen"
    """P-LOG-3."""
    polls: Literal["in_order", "last_only"] = "in_order"
    """P-LOG-4."""

    # Taking over.
    taker_reads: Literal["tail", "prefix", "epoch_hint", "slot_hint"] = "tail"
    late_acquire_reads_on: bool = True
    """P-LOG-1."""
    acts_unconfirmed: bool = False
    """Nothing is sent before one's acquire is known to be committed (P-LOG-5)."""

    # Cancelling.
    cancel: Literal["record", "flag", "acked_when_sent", "acked_when_met"] = "record"
    """P-LOG-8."""
    cancel_takes_back: bool = True
    """An uncommitted tool_start goes when a cancel is met (P-LOG-9)."""
    cancel_names_turn: bool = True
    cancel_once: bool = True
    """No cancel record is appended if one is there (P-LOG-8)."""
    handed_cancel: Literal["acked_when_committed", "acked_when_handed"] = "acked_when_committed"

    # Running tools.
    tool_waits: bool = True
    """A tool runs only after its tool_start is committed (P-RUN-4)."""
    unknown_tool: Literal["marked", "run_again"] = "marked"
    """P-RUN-6."""
    attempt_ahead: bool = True
    """An attempt is durable before it is asked for (P-RUN-3)."""
    grant: Literal["one_attempt", "for_ever"] = "one_attempt"
    """P-RUN-7."""
    gates_forgotten: bool = True
    """The next attempt forgets which gates of the last one stayed shut."""
    refuses_old_attempts: bool = True
    """P-RUN-3."""
    ack_names_attempt: bool = True
    """P-RUN-3."""
    suspension_shuts_gate: bool = True
    """P-RUN-5."""
    cancel_shuts_gate: bool = True
    """P-RUN-8."""
    not_executed: Literal["proved", "guessed"] = "proved"
    """P-EVT-5."""


PROTOCOL = Rules()
