"""The native browser format: events and control events as Server-Sent Events, byte for byte.

Knows nothing of sockets, sessions or what an event means. Injection is impossible by construction:
ids are integers, types come from a closed set, and ``data`` is one line of printable ASCII.

Invariants of every frame (the parsers of the field are why, see PROTOCOL.md):

- lines end in LF only; a bare CR can occur nowhere
- a block without ``data:`` is never sent: some clients fire an empty message on it
- ``retry:`` rides in a block that carries data; the keep-alive is a comment without a blank line
"""

from __future__ import annotations

from collections.abc import Mapping

from edge.core import event as types
from edge.core.control import CaughtUp, Control, Reauth, Reconnect, Reset, Rewind, Status
from edge.core.event import Event, compact_json

CONTENT_TYPE = "text/event-stream; charset=utf-8"

PING = b": ping\n"
PING_EVENT = b"event: ping\ndata: {}\n\n"
"""Without an id, so that it leaves the browser's last one alone."""

EVENT_TYPES = frozenset(
    {
        types.TURN_START,
        types.TOKEN,
        types.REASONING,
        types.MESSAGE,
        types.TOOL_START,
        types.TOOL_PROGRESS,
        types.TOOL_END,
        types.STATE,
        types.NOTICE,
        types.SUSPENDED,
        types.CUSTOM,
        types.DONE,
        types.ERROR,
    }
)

_MIDDLES = {name: f"\nevent: {name}\ndata: ".encode("ascii") for name in EVENT_TYPES}


def event_frame(event: Event) -> bytes:
    """Return the event's block.

    Raises:
        ValueError: the type is unknown or the data is not one line of printable ASCII. Refused at
            write time: what a browser cannot read back must not reach the log either.
    """
    middle = _MIDDLES.get(event.type)
    if middle is None:
        raise ValueError("unknown event type")
    data = event.data
    if not (data.isascii() and data.isprintable()):
        raise ValueError("event data is not one line of printable ASCII")
    return b"id: %d-%d%b%b\n\n" % (event.epoch, event.seq, middle, data.encode("ascii"))


def control_frame(control: Control) -> bytes:
    """Return the block of what one connection is told besides the log.

    A control without a position has no ``id:`` line, so that it leaves the browser's last id alone.
    """
    match control:
        case Rewind(to):
            return b"id: %d-%d\n" % (to.epoch, to.seq) + _block("rewind", {"to": to.seq})
        case Reset(reason, first_seq):
            data = {"reason": reason, "first_seq": first_seq}
            return b"id: 0-%d\n" % (first_seq - 1) + _block("reset", data)
        case CaughtUp():
            return _block("caught_up", {})
        case Status(state):
            return _block("status", {"state": state})
        case Reauth(in_ms):
            return _block("reauth", {"in_ms": in_ms})
        case Reconnect(reason, retry_ms):
            return b"retry: %d\n" % retry_ms + _block("reconnect", {"reason": reason})


def _block(name: str, data: Mapping[str, object]) -> bytes:
    return f"event: {name}\ndata: {compact_json(data)}\n\n".encode("ascii")
