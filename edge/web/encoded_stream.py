"""One viewer in a browser format of another maker: the same loop as ``edge.web.event_stream``, other ends.

Knows nothing of any format. Their clients know no cursor and take every tidy end for success, so a
stream that does not end with the format's own end is cut: the connection closes without the last
chunk of HTTP, every client sees a network error, and comes back to be told everything anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from quart import Request, Response

from edge.core.control import CaughtUp, Control, Reconnect, Reset, Rewind
from edge.core.errors import EdgeError
from edge.ports import Dialect, Encoder, MustReplay, Principal
from edge.sessions.tail import Shown
from edge.sessions.viewer import Viewer
from edge.web.event_stream import bind_viewer, event_response
from edge.web.guard import StreamCut

_log = logging.getLogger(__name__)


def stream_encoded(
    request: Request, caller: Principal, viewer: Viewer, encoder: Encoder, dialect: Dialect
) -> Response:
    """Return the response that tells what ``viewer`` sees, from its start, in the encoder's format."""
    bind_viewer(request, caller, viewer)
    return _response(_chunks(viewer, _Teller(encoder), dialect), dialect)


def stream_nothing(dialect: Dialect) -> Response:
    """Return the stream of a session in which nothing was ever said."""
    return _response(dialect.ping, dialect)


def _response(body: AsyncIterator[bytes] | bytes, dialect: Dialect) -> Response:
    response = event_response(body, dialect.content_type)
    response.headers.update(dialect.headers)
    return response


@dataclass(slots=True)
class _Teller:
    encoder: Encoder
    caught_up: bool = False

    @property
    def over(self) -> bool:
        """Whether the end was said. Before the stream has caught up it may be that of an earlier run."""
        return self.caught_up and self.encoder.over

    def tell(self, items: Iterable[Shown | Control]) -> bytes:
        return b"".join(map(self._tell, items))

    def _tell(self, item: Shown | Control) -> bytes:
        match item:
            case Shown(event, _):
                return self.encoder.event(event)
            case Rewind(to):
                return self.encoder.rewind(to.seq)
            case Reset() | Reconnect():
                raise MustReplay
            case CaughtUp():
                self.caught_up = True
        return b""


async def _chunks(viewer: Viewer, teller: _Teller, dialect: Dialect) -> AsyncIterator[bytes]:
    # The first byte goes out before there is anything to say, so that headers arrive at once.
    yield dialect.ping
    try:
        while not teller.over and (items := await viewer.next()) is not None:
            yield teller.tell(items) or dialect.ping
            if viewer.lags:
                await asyncio.sleep(0)  # a client that left is noticed; see edge.web.event_stream
    except MustReplay:
        pass
    except EdgeError as error:
        _log.warning("a stream ended early", extra={"code": error.code})
    except Exception as error:  # noqa: BLE001  The boundary: here the response is half sent.
        _log.error("a stream failed", exc_info=error)
    if not teller.over:
        raise StreamCut
