"""What a request says in its headers, query and path, read strictly.

Knows nothing of bodies. A header that may occur once is refused when it occurs twice: two readers
along the way could believe different ones.
"""

from __future__ import annotations

import re

from quart import Request
from werkzeug.datastructures import MultiDict

from edge.core.cursor import Cursor
from edge.core.errors import SessionNotFound, ToolCallNotFound, TurnNotFound
from edge.core.requests import Until
from edge.ports import Authenticator, Principal
from edge.web.problems import Refused

EVENT_STREAM = "text/event-stream"
JSON = "application/json"

_SINGLE = ("Authorization", "Content-Type", "Content-Encoding", "Last-Event-ID")
_CREDENTIALS = frozenset({"access_token", "api_key", "authorization", "id_token", "token"})
_CURSOR_QUERIES = ("last_event_id", "lastEventId")

_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)
_TURN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_CALL_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)
# The IETF draft writes the key as a structured-field string, in quotes; most clients do not.
_IDEMPOTENCY_KEY = re.compile(r'("?)([A-Za-z0-9_-]{16,128})\1', re.ASCII)


async def read_caller(request: Request, authenticator: Authenticator) -> Principal:
    """Return who calls, in a request that has nothing that no route accepts.

    Raises:
        Refused: ``duplicate-header``, ``credentials-in-url``, or what the authenticator says.
    """
    if any(len(request.headers.getlist(name)) > 1 for name in _SINGLE):
        raise Refused("duplicate-header")
    if any(name.lower() in _CREDENTIALS for name in request.args):
        raise Refused("credentials-in-url")
    return await authenticator.authenticate(request.headers.getlist("Authorization"))


def check_ids(session_id: str, turn_id: str | None = None, call_id: str | None = None) -> None:
    """Refuse ids that nobody ever made, before anything is read for them.

    Raises:
        SessionNotFound, TurnNotFound, ToolCallNotFound: as for an id that was never made.
    """
    # Two underscores at both ends are Firestore's own; no session was ever called so.
    reserved = session_id.startswith("__") and session_id.endswith("__")
    if reserved or _SESSION_ID.fullmatch(session_id) is None:
        raise SessionNotFound
    if turn_id is not None and _TURN_ID.fullmatch(turn_id) is None:
        raise TurnNotFound
    if call_id is not None and _CALL_ID.fullmatch(call_id) is None:
        raise ToolCallNotFound


def read_idempotency_key(request: Request) -> str:
    """Return the one key. Raises ``Refused``."""
    values = request.headers.getlist("Idempotency-Key")
    if not values:
        raise Refused("idempotency-key-required")
    match = _IDEMPOTENCY_KEY.fullmatch(values[0])
    if match is None or len(values) > 1:
        raise Refused("idempotency-key-invalid")
    return match[2]


def read_cursor(request: Request) -> Cursor | None:
    """Return where the caller wants to resume: the header wins, then the query.

    A browser cannot set the header on its first connect, so a page passes the cursor of its
    snapshot in the query; on every reconnect the browser's own header is newer.

    Raises:
        InvalidCursor: it is no id that was ever sent.
        Refused: ``invalid-query``, when the query names it twice.
    """
    header = request.headers.get("Last-Event-ID")
    text = header if header is not None else _single(request.args, *_CURSOR_QUERIES)
    return None if text is None else Cursor.parse(text)


def read_until(request: Request) -> Until:
    """Return when the stream shall end. Raises ``Refused``."""
    match _single(request.args, "until"):
        case None | "turn_end":
            return "turn_end"
        case "follow":
            return "follow"
        case _:
            raise Refused("invalid-query")


def wants_ping_events(request: Request) -> bool:
    """Return whether the stream's pings shall be events instead of comments. Raises ``Refused``."""
    match _single(request.args, "pings"):
        case None | "comment":
            return False
        case "event":
            return True
        case _:
            raise Refused("invalid-query")


def accepts_stream(request: Request) -> bool:
    """Whether an event stream is an answer that the caller takes."""
    if "Accept" not in request.headers:
        return True
    return request.accept_mimetypes[EVENT_STREAM] > 0


def prefers_stream(request: Request) -> bool:
    """Whether the caller asked for an event stream by name, and rather than for JSON."""
    accept = request.accept_mimetypes
    named = any(value.lower() == EVENT_STREAM for value in accept.values())
    return named and accept[EVENT_STREAM] > accept[JSON]


def _single(args: MultiDict[str, str], *names: str) -> str | None:
    values = [value for name in names for value in args.getlist(name)]
    if len(values) > 1:
        raise Refused("invalid-query")
    return values[0] if values else None
