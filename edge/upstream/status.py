"""What the end of a call means: from a gRPC status to the reason that a turn is told.

Knows nothing of streams. A status' own words stay out of every exception and log: a runtime wrote
them, and they may quote a prompt.
"""

from __future__ import annotations

from grpc import StatusCode
from grpc.aio import AioRpcError

from edge.core.errors import EdgeError
from edge.ports import AttemptSuperseded, RuntimeEnded

_REASONS = {
    # The connection broke, or the instance is going away: another one may answer.
    StatusCode.UNAVAILABLE: ("runtime_unavailable", True),
    StatusCode.CANCELLED: ("runtime_unavailable", True),
    StatusCode.DEADLINE_EXCEEDED: ("runtime_timeout", True),
    StatusCode.RESOURCE_EXHAUSTED: ("runtime_overloaded", True),
    # Nothing that another attempt would change.
    StatusCode.UNAUTHENTICATED: ("runtime_auth", False),
    StatusCode.PERMISSION_DENIED: ("runtime_auth", False),
    StatusCode.UNIMPLEMENTED: ("runtime_incompatible", False),
    StatusCode.INVALID_ARGUMENT: ("runtime_protocol_error", False),
    StatusCode.NOT_FOUND: ("unknown_agent", False),
}
# Also ALREADY_EXISTS: this edge makes an attempt durable before it asks for it, so the number can
# be taken only by its own duplicate or by a stale edge. The next attempt settles both.
_OTHERWISE = ("runtime_error", True)

_TOO_LARGE = {
    "CLIENT: Received message larger than max": "event_too_large",
    "SERVER: Received message larger than max": "history_too_large",
}
"""What gRPC itself says when one side refuses the other's message; overload has the same code."""


def failure_of(error: AioRpcError) -> EdgeError:
    """Return what an attempt's stream must raise for a call that ended with ``error``."""
    code = error.code()
    if code is StatusCode.ABORTED:
        return AttemptSuperseded()
    if code is StatusCode.RESOURCE_EXHAUSTED:
        for words, reason in _TOO_LARGE.items():
            if words in (error.details() or ""):
                return RuntimeEnded(reason, retryable=False)
    reason, retryable = _REASONS.get(code, _OTHERWISE)
    return RuntimeEnded(reason, retryable=retryable)
