"""The one table from error code to HTTP answer, and ``application/problem+json`` (RFC 9457).

Knows nothing of routes. A problem never echoes what was sent: it is shown to whoever asked, and
ends up in logs and screenshots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edge.core.errors import ClientFault, EdgeError, TurnInProgress
from edge.core.event import compact_json

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Kind:
    """How one code is answered."""

    status: int
    title: str
    retry_after_seconds: int | None = None
    challenge: str | None = None
    """What ``WWW-Authenticate`` says (RFC 6750)."""


_INVALID_TOKEN = 'Bearer error="invalid_token"'

KINDS: Mapping[str, Kind] = {
    "bad-request": Kind(400, "The request is malformed."),
    "credentials-in-url": Kind(400, "Credentials belong in a header, never in the URL."),
    "duplicate-header": Kind(400, "A header that may occur once occurs twice."),
    "idempotency-key-invalid": Kind(
        400, "The Idempotency-Key is not one value of 16 to 128 letters, digits, '-' or '_'."
    ),
    "idempotency-key-required": Kind(400, "Starting a turn needs an Idempotency-Key header."),
    "invalid-json": Kind(400, "The body is not strict JSON in UTF-8."),
    "invalid-last-event-id": Kind(400, "The Last-Event-ID is not an id that was ever sent."),
    "invalid-query": Kind(400, "A query parameter has no known value, or occurs twice."),
    "upgrade-not-supported": Kind(400, "This server speaks no WebSocket."),
    "invalid-token": Kind(
        401, "The token is none that this server takes.", challenge=_INVALID_TOKEN
    ),
    "token-expired": Kind(401, "The token has expired.", challenge=_INVALID_TOKEN),
    "unauthenticated": Kind(401, "The caller is not known.", challenge="Bearer"),
    "origin-not-allowed": Kind(403, "Pages of another origin may not call this server."),
    "not-found": Kind(404, "There is nothing at this address."),
    "session-not-found": Kind(404, "There is no such session."),
    "tool-call-not-found": Kind(404, "No such tool call waits for a decision."),
    "turn-not-found": Kind(404, "The session has no such turn."),
    "method-not-allowed": Kind(405, "This address does not answer that method."),
    "not-acceptable": Kind(406, "The answer is an event stream, which Accept excludes."),
    "request-timeout": Kind(408, "The body took too long to arrive."),
    "tool-call-settled": Kind(409, "The tool call was decided before, and differently."),
    "turn-in-progress": Kind(409, "The session is busy with another turn."),
    "session-expired": Kind(410, "The session is past its retention."),
    "body-too-large": Kind(413, "The body is larger than this call takes."),
    "uri-too-long": Kind(414, "The URL is longer than 2 KiB."),
    "unsupported-media-type": Kind(415, "The body must be plain application/json in UTF-8."),
    "host-not-allowed": Kind(421, "This server does not answer for that host."),
    "idempotency-key-reused": Kind(422, "The key was used before with another body."),
    "invalid-body": Kind(422, "The body does not have the right shape."),
    "unknown-agent": Kind(422, "The runtime runs no agent of that name."),
    "too-many-streams": Kind(
        429, "The session is watched as often as it may be.", retry_after_seconds=5
    ),
    "headers-too-large": Kind(431, "The headers are larger than 16 KiB."),
    "internal-error": Kind(500, "The server failed."),
    "auth-keys-unavailable": Kind(
        503, "The keys that tokens are checked with cannot be had.", retry_after_seconds=5
    ),
    "draining": Kind(503, "This instance is shutting down.", retry_after_seconds=1),
    "journal-unavailable": Kind(503, "The journal cannot be reached.", retry_after_seconds=2),
    "overloaded": Kind(503, "This instance serves all it can.", retry_after_seconds=5),
    "runtime-unavailable": Kind(503, "The agent runtime cannot be reached.", retry_after_seconds=2),
    "http-version-not-supported": Kind(505, "This server speaks HTTP/1.1."),
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one place of a body."""

    pointer: str
    """JSON Pointer (RFC 6901), made of names and positions that we know, never of sent ones."""
    detail: str


class Refused(ClientFault):
    """A request that is refused before any session hears of it."""

    def __init__(
        self, code: str, *, errors: Sequence[FieldError] = (), allow: Sequence[str] = ()
    ) -> None:
        super().__init__(code)
        self.code = code
        self.errors = errors
        self.allow = allow


@dataclass(frozen=True, slots=True)
class Problem:
    """An answer, ready for Quart or for bare ASGI."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def is_known(error: EdgeError) -> bool:
    """Whether the caller is told what happened; otherwise it is our failure and says nothing."""
    return error.code in KINDS


def problem_of(error: EdgeError) -> Problem:
    """Return the answer for an error; ``internal-error`` for one that has no row in the table."""
    code = error.code if is_known(error) else "internal-error"
    kind = KINDS[code]
    members: dict[str, object] = {
        "type": f"urn:unbroken:problem:{code}",
        "title": kind.title,
        "status": kind.status,
    }
    headers = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}
    if kind.retry_after_seconds is not None:
        headers["Retry-After"] = str(kind.retry_after_seconds)
    if kind.challenge is not None:
        headers["WWW-Authenticate"] = kind.challenge
    if isinstance(error, TurnInProgress):
        members["turn_id"] = error.turn_id
    if isinstance(error, Refused):
        if error.errors:
            members["errors"] = [{"pointer": e.pointer, "detail": e.detail} for e in error.errors]
        if error.allow:
            headers["Allow"] = ", ".join(sorted(error.allow))
    return Problem(kind.status, headers, compact_json(members).encode("ascii"))
