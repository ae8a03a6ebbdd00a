"""The edge's ports: what it needs from a journal, a runtime, a clock, an authenticator, telemetry.

Knows nothing of who implements them. The journal is pull-only: it never calls back, so a reader
always sees where replay ends and the tail begins.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from edge.core.errors import EdgeError, JournalUnavailable
from edge.core.event import Draft, Event
from edge.core.log import AnyRecord


class SlotTaken(EdgeError):
    """Definite: some record of the append could not be created, so none of them was.

    A slot holds a record already, or the turn entry exists. Read the log and obey what is there.
    """

    code = "slot-taken"


class AppendUnknown(JournalUnavailable):
    """The append may or may not have happened, or may still happen. Read its slot to settle it."""


class AppendRefused(EdgeError):
    """Definite: the store will never take this record (too large, malformed). Nothing was written."""

    code = "append-refused"


@dataclass(frozen=True, slots=True)
class Head:
    """Hints about a session, and its owner. Only ``owner`` is ever relied upon."""

    owner: str
    """Uid of the user who created the session."""
    epoch: int
    last_slot: int
    renewed_seconds_ago: float
    """Age of the newest renewal, by the store's own clock; infinite if there was none."""
    renewed_at_ms: int
    """Stamp of the newest renewal, 0 if there was none: only to be told from another one."""
    watched_seconds_ago: float
    """Age of the newest ``watch``, by the store's own clock; infinite if there was none."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """What an owner tells takers about itself; ignored unless its epoch is the head's or newer."""

    epoch: int
    last_slot: int
    released: bool = False
    """The owner stopped on purpose: takers need not wait for the lease to run out."""


@dataclass(frozen=True, slots=True)
class Page:
    """A run of records in slot order."""

    records: Sequence[AnyRecord]
    more: bool
    """Whether the store held further records when the page was cut."""


@dataclass(frozen=True, slots=True)
class TurnEntry:
    """A turn's create-only document: what makes its POST idempotent."""

    turn_id: str
    body_hash: str
    slot: int
    """Slot of the turn's first ``Events`` record."""


class Journal(Protocol):
    """The durable log of every session. One contract, proved by one suite for every store.

    Every method raises ``JournalUnavailable`` when the store cannot answer now. Records whose
    ``expire_at_ms`` has passed by the store's clock are absent to every reader.
    """

    async def create_session(self, session_id: str, owner: str) -> None:
        """Create the head of a session with an unused id. Raises ``SlotTaken`` if it exists."""

    async def head(self, session_id: str) -> Head | None:
        """Read the head; ``None`` if there is none. A strong read, but its content is hints."""

    async def read(self, session_id: str, after_slot: int, limit: int) -> Page:
        """Read up to ``limit`` records with a slot above ``after_slot``, in slot order.

        A strong read: it sees every append acknowledged before the call. It starts at the oldest
        record still kept, and never skips: a hole shows as a jump in the slots.
        """

    async def locate(self, session_id: str, seq: int) -> int | None:
        """Return the slot of the first record whose ``last_seq`` is at least ``seq``, if any."""

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        """Create the records, and the turn entry if given, all or nothing. Never overwrites, never retries.

        Raises:
            SlotTaken: one of them exists; nothing was written.
            AppendUnknown: it may have been applied, or may yet be.
            AppendRefused: it can never be applied.
        """

    async def turn(self, session_id: str, turn_id: str) -> TurnEntry | None:
        """Read a turn's entry, for as long as the store has it: while it is there, its key is taken."""

    async def renew(self, session_id: str, renewal: Renewal) -> None:
        """Store the owner's hints with the store's time. Silently ignored from an older epoch."""

    async def watch(self, session_id: str) -> None:
        """Store, with the store's time, that somebody views the session."""

    async def check(self) -> None:
        """Raise ``JournalUnavailable`` unless the store answers."""

    async def close(self) -> None:
        """Release what the journal holds; the last call."""


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """Names one attempt of one turn towards the runtime."""

    session_id: str
    turn_id: str
    attempt: int
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCall:
    """Everything that a runtime needs to run or continue a turn."""

    ref: AttemptRef
    agent: str
    input: Sequence[Mapping[str, object]] = ()
    """Parsed content parts of attempt 1: ``{"type":"text","text":...}`` and its kin."""
    history: Sequence[Event] = ()
    """Structural events of the session, oldest first; with attempt > 1 including this turn's."""
    resolutions: Sequence[tuple[str, str]] = ()
    """``(call_id, decision)`` as in ``edge.core.log.Resolve``."""


class RuntimeEnded(EdgeError):
    """The attempt's stream ended with a failure; ``reason`` is one of the table in PROTOCOL.md."""

    code = "runtime-ended"

    def __init__(self, reason: str, *, retryable: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable


class AttemptSuperseded(EdgeError):
    """The runtime has seen a higher attempt of the turn: this edge is stale."""

    code = "attempt-superseded"


class AttemptStream(Protocol):
    """The events of one attempt, in batches that arrived together."""

    def __aiter__(self) -> AsyncIterator[Sequence[Draft]]:
        """Iterate to the end of the stream.

        Raises:
            RuntimeEnded: the stream broke, or the runtime broke the protocol.
            AttemptSuperseded: see there.
        """

    def cancel(self) -> None:
        """Stop the call now. Idempotent; must be called when the iteration is left early."""


@dataclass(frozen=True, slots=True)
class RuntimeInfo:
    """What a runtime says of itself."""

    agents: Sequence[str]
    """The first is the default."""
    resume_supported: bool
    checkpoint_modes: Sequence[str] = ()
    """What it honours of ``hold`` and ``suspend``."""


class Runtime(Protocol):
    """The agent runtime, one or many processes behind one target."""

    async def info(self) -> RuntimeInfo:
        """Describe the runtime. Raises ``RuntimeUnavailable``."""

    def start(self, call: AttemptCall) -> AttemptStream:
        """Run attempt 1, or continue the turn when the attempt is higher. Does not wait."""

    async def ack(self, ref: AttemptRef, committed_index: int) -> bool:
        """Release gates up to an index. ``False``: the attempt is not there (drop it, resume)."""

    async def cancel(self, ref: AttemptRef, reason: str, grace_seconds: float) -> bool:
        """Ask an attempt to stop gracefully. ``False``: it is not there."""

    async def close(self) -> None:
        """Release the channel; the last call."""


class Clock(Protocol):
    """Wall time, stamped into records for people and for retention; never used to decide order."""

    def now_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated end user."""

    uid: str
    expires_at_ms: int | None = None
    """When the credentials are no longer taken, by the wall clock; ``None``: never."""


class Authenticator(Protocol):
    """Says who is calling."""

    open_to_all: bool
    """Whether anybody who can connect is let in: such an edge must not leave loopback."""

    async def authenticate(self, authorization: Sequence[str]) -> Principal:
        """Return the caller, from the request's ``Authorization`` header values.

        Raises:
            EdgeError: it is nobody who may call, or nobody can say now.
        """


class Telemetry(Protocol):
    """Counts what happens. The names are listed in ``edge.telemetry``."""

    def count(self, name: str) -> None:
        """Count one more."""

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge."""


class MustReplay(EdgeError):
    """A browser format cannot take back what it said: its client has to be told everything anew."""

    code = "must-replay"


class Encoder(Protocol):
    """One stream in a browser format that knows no cursor: a fold over a session's events.

    Whoever comes back is told everything again, so the same events give the same bytes.
    """

    @property
    def over(self) -> bool:
        """Whether the format's own end has been said, and nothing since.

        Only then may a stream end tidily: to the clients of such formats every tidy end is success.
        """

    def event(self, event: Event) -> bytes:
        """Return the frames of the next event; empty if the format has nothing to say of it.

        Raises:
            MustReplay: it contradicts what was said, and the format has no words for that.
        """

    def rewind(self, seq: int) -> bytes:
        """Take back what was said of events after ``seq``. Raises ``MustReplay``, as ``event``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who reads one stream of a thread in AG-UI, and what of the thread it has already."""

    thread_id: str
    declares_version: bool
    """Whether it speaks AG-UI 1.0; older ones refuse what is new in it."""
    after_seq: int | None = None
    """It wants the one run that opens after this event. ``None``: everything anew, and what comes."""
    answered: frozenset[str] = frozenset()
    """Calls, by AG-UI's ids, whose results it has brought itself."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What all streams of such a format have in common."""

    content_type: str
    ping: bytes
    """A comment, which no client takes for a message."""
    headers: Mapping[str, str] = field(default_factory=dict)
