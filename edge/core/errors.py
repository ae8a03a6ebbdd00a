"""The edge's error tree: every failure that a caller may meet, each with a stable code.

Knows nothing of HTTP: ``edge.web.problems`` holds the one table from code to status.

- ``EdgeError``
  - ``ClientFault``: the caller asked for something that cannot be
  - ``Unavailable``: the same call may succeed later
  - ``Fenced``: this process no longer writes the session (normal; never shown to a client)
  - ``LogBroken``: the journal holds what no correct writer could have written
"""

from __future__ import annotations


class EdgeError(Exception):
    """Anything the edge refuses or cannot do; ``code`` is stable and part of the contract."""

    code = "internal-error"


class ClientFault(EdgeError):
    """The caller's mistake; repeating the call changes nothing."""


class InvalidCursor(ClientFault):
    """The ``Last-Event-ID`` is no id that an edge could have sent."""

    code = "invalid-last-event-id"


class SessionNotFound(ClientFault):
    """No such session, or it belongs to somebody else: the two cannot be told apart."""

    code = "session-not-found"


class SessionExpired(ClientFault):
    """The session's log is past its retention."""

    code = "session-expired"


class TurnNotFound(ClientFault):
    """The session has no such turn."""

    code = "turn-not-found"


class ToolCallNotFound(ClientFault):
    """The turn has no such tool call, or the call does not wait for a decision."""

    code = "tool-call-not-found"


class ToolCallSettled(ClientFault):
    """The tool call was decided before, and differently."""

    code = "tool-call-settled"


class IdempotencyKeyReused(ClientFault):
    """The key was used before with another body."""

    code = "idempotency-key-reused"


class TurnInProgress(ClientFault):
    """The session is busy with another turn."""

    code = "turn-in-progress"

    def __init__(self, turn_id: str) -> None:
        super().__init__(turn_id)
        self.turn_id = turn_id


class TooManyStreams(ClientFault):
    """The session is being watched as often as it may be."""

    code = "too-many-streams"


class UnknownAgent(ClientFault):
    """The runtime runs no agent of that name."""

    code = "unknown-agent"


class Unavailable(EdgeError):
    """Something the edge needs is away; the same call may succeed later."""


class JournalUnavailable(Unavailable):
    """The journal cannot be read or written now; nothing was decided."""

    code = "journal-unavailable"


class RuntimeUnavailable(Unavailable):
    """The agent runtime cannot be reached now."""

    code = "runtime-unavailable"


class Draining(Unavailable):
    """This edge is shutting down; another one will answer."""

    code = "draining"


class Overloaded(Unavailable):
    """This edge serves as many streams as it may."""

    code = "overloaded"


class Fenced(EdgeError):
    """A newer epoch exists: nothing of this writer may be shown or committed any more."""

    code = "fenced"


class LogBroken(EdgeError):
    """The log has a hole or an impossible record: readers are told, nothing is guessed."""

    code = "log-broken"
