"""One AG-UI stream: of all that a thread's events are to AG-UI, what one listener wants to hear.

Knows nothing of sockets. A stream may end tidily only when ``over``: to AG-UI's clients the end of a
connection is the success of a run.
"""

from __future__ import annotations

from edge.core.event import Event
from edge.ports import Dialect, Encoder, Listener
from edge.wire.ag_ui import AgUiFold
from edge.wire.ag_ui_events import CONTENT_TYPE, PING, AgUiEvent, frame

DIALECT = Dialect(CONTENT_TYPE, PING)


def encoder(listener: Listener) -> Encoder:
    """Return what turns all events of a session, from the oldest on, into the listener's stream."""
    if listener.after_seq is None:
        return WholeThread(listener)
    return OneRun(listener, listener.after_seq)


class WholeThread:
    """Everything anew, and then what comes. It is over whenever no run is open."""

    def __init__(self, listener: Listener) -> None:
        self._fold = _fold(listener, anew=True)

    @property
    def over(self) -> bool:
        return not self._fold.run_open

    def event(self, event: Event) -> bytes:
        return frame(self._fold.apply(event))

    def rewind(self, seq: int) -> bytes:
        return frame(self._fold.rewind(seq))


class OneRun:
    """The run that opens after an event. What came before it is read, because it may have to be restated."""

    def __init__(self, listener: Listener, after_seq: int) -> None:
        self.over = False
        self._fold = _fold(listener, anew=False)
        self._after_seq = after_seq
        self._speaks = False
        self._answered = listener.answered

    def event(self, event: Event) -> bytes:
        said = self._fold.apply(event)
        if self.over or event.seq <= self._after_seq:
            return b""
        self._speaks = True
        self.over = not self._fold.run_open
        return frame(s for s in said if not self._is_known(s))

    def rewind(self, seq: int) -> bytes:
        said = self._fold.rewind(seq)
        return frame(said) if self._speaks and not self.over else b""

    def _is_known(self, said: AgUiEvent) -> bool:
        """Whether the client has it: it would show the result of a tool of its own twice."""
        return said["type"] == "TOOL_CALL_RESULT" and said["toolCallId"] in self._answered


def _fold(listener: Listener, *, anew: bool) -> AgUiFold:
    version = listener.declares_version
    return AgUiFold(listener.thread_id, declares_version=version, anew=anew)
