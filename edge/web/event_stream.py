"""One viewer, one loop: what the session says becomes the body of one HTTP response.

Knows nothing of journals and turns. What is ready together leaves in one chunk; when nothing is,
the loop waits in ``viewer.next`` and nowhere else.

The viewer is closed when the *request* ends, not when the generator does: a client that leaves
before the first byte never starts the generator, and its ``finally`` would never run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from typing import Any, cast

from quart import Request, Response

from edge.core.control import Control, Reconnect
from edge.core.errors import EdgeError
from edge.ports import Principal
from edge.sessions.tail import Shown
from edge.sessions.viewer import Viewer
from edge.web.guard import EXITS, INCOMING, Incoming
from edge.web.parts import Framing, Parts

_log = logging.getLogger(__name__)


def stream_viewer(
    request: Request, caller: Principal, viewer: Viewer, parts: Parts, ping: bytes
) -> Response:
    """Return the response that shows everything that ``viewer`` sees, and ``ping`` when that is nothing."""
    bind_viewer(request, caller, viewer)
    response = event_response(_chunks(viewer, parts, ping), parts.framing.content_type)
    # Mercure's rule: a position other than the one asked for means loss or rewind, and a client
    # that reads headers knows it before the first byte.
    response.headers["Last-Event-ID"] = str(viewer.start)
    return response


def bind_viewer(request: Request, caller: Principal, viewer: Viewer) -> None:
    """Let the viewer, the request and the caller's credentials end together, whichever ends first."""
    scope = cast("dict[str, Any]", request.scope)
    exits: ExitStack = scope[EXITS]
    exits.callback(viewer.close)
    incoming: Incoming = scope[INCOMING]
    viewer.on_stall = incoming.give_up
    viewer.expires_at_ms = caller.expires_at_ms


def send_away(reconnect: Reconnect, framing: Framing) -> Response:
    """Return a stream that ends at once. Any status but 200 stops an ``EventSource`` for good."""
    return event_response(framing.ping + framing.control(reconnect), framing.content_type)


async def _chunks(viewer: Viewer, parts: Parts, ping: bytes) -> AsyncIterator[bytes]:
    # The first byte goes out before there is anything to say, so that headers arrive at once.
    yield ping
    try:
        while (items := await viewer.next()) is not None:
            yield _join(items, parts.framing) or ping
            if viewer.lags:
                # Hypercorn keeps quiet about a client that left and accepts every further chunk
                # without suspending. Without this a replay would never learn of it, nor any other task.
                await asyncio.sleep(0)
        return
    except EdgeError as error:
        _log.warning("a stream ended early", extra={"code": error.code})
    except Exception as error:  # noqa: BLE001  The boundary: here the response is half sent.
        _log.error("a stream failed", exc_info=error)
    # Not an ``error``, which would end the turn in the reader's eyes: the turn is as it was. A
    # tidy end is safe, because to every client it means "come back with your last id".
    yield parts.framing.control(parts.reconnect("busy"))


def _join(items: Sequence[Shown | Control], framing: Framing) -> bytes:
    return b"".join(
        [item.frame if isinstance(item, Shown) else framing.control(item) for item in items]
    )


def event_response(body: AsyncIterator[bytes] | bytes, content_type: str) -> Response:
    """Return a response that may last, and that nothing on the way keeps or holds back."""
    response = Response(body, content_type=content_type)
    response.timeout = None  # the only place: a stream may outlive every response timeout
    response.headers["Cache-Control"] = "no-store, no-transform"
    response.headers["X-Accel-Buffering"] = "no"
    return response
