"""One turn as a UI message stream of Vercel's AI SDK, for both majors in use.

Knows nothing of HTTP, sockets or journals. A fold over a turn's events: equal events give equal frames,
live or replayed, on every edge, but for what was known when a stream began: what had been withdrawn by then
is left out, and a page's own tool that has an outcome is not handed to the page again. A client of major 6 is
told messages that are settled by then as a whole.

The format only ever appends to one assistant message. Taking text back is beyond it, but for ``reset-step``
of major 7, which drops all parts of the current step; major 6 has to be told the turn anew.

Invariant: every message that is not settled lies within the current step, so that it can be dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from edge.core import event as types
from edge.core.event import PARKING, Event
from edge.core.recap import Recap
from edge.ports import Dialect, MustReplay
from edge.wire import ai_sdk_chunks as ui
from edge.wire.ai_sdk_chunks import Chunk
from edge.wire.loose_json import parse_loosely

DIALECT = Dialect(
    content_type="text/event-stream; charset=utf-8",
    ping=b": ping\n",
    headers={"X-Vercel-AI-UI-Message-Stream": "v1"},
)

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Major:
    """What tells the majors of the client apart."""

    resets_steps: bool
    stopped: str
    """Its ``finishReason`` for a turn that somebody stopped."""


V6 = Major(resets_steps=False, stopped="other")
V7 = Major(resets_steps=True, stopped="interrupted")


@dataclass(frozen=True, slots=True)
class _Said:
    """A chunk of the current step; ``message_id`` names the message whose text it carries, if any."""

    seq: int
    message_id: str
    chunk: Chunk


@dataclass(slots=True)
class _Part:
    """Streamed text, as the client has it."""

    pieces: list[str] = field(default_factory=list)
    open: bool = True


class TurnEncoder:
    """Tells one turn. ``event`` takes the log's events from the turn's first on."""

    def __init__(self, recap: Recap, after_seq: int, *, major: Major) -> None:
        """``recap`` is what is known of the turn by now; nothing is said of events up to ``after_seq``."""
        self.over = False
        self._after_seq = after_seq
        self._major = major
        self._turn_id = recap.turn_id
        self._known = _Known.of(recap)
        self._attempt = 1
        self._begun = False
        self._goes_on = False
        """Whether the client has the turn's beginning already."""
        self._in_step = False
        self._step: list[_Said] = []
        self._parts: dict[tuple[str, str], _Part] = {}
        self._unsettled: dict[str, None] = {}
        self._calls: set[str] = set()
        self._handlers: dict[str, Callable[[Event, Body], Iterator[Chunk]]] = {
            types.TURN_START: self._turn_start,
            types.TOKEN: self._delta,
            types.REASONING: self._delta,
            types.MESSAGE: self._message,
            types.TOOL_START: self._tool_start,
            types.TOOL_PROGRESS: self._tool_progress,
            types.TOOL_END: self._tool_end,
            types.STATE: self._state,
            types.NOTICE: self._notice,
            types.SUSPENDED: self._suspended,
            types.CUSTOM: self._custom,
            types.DONE: self._done,
            types.ERROR: self._error,
        }

    def event(self, event: Event) -> bytes:
        """See ``edge.ports.Encoder``."""
        if self.over:
            return b""
        body = json.loads(event.data)
        if event.seq <= self._after_seq:
            list(self._handlers[event.type](event, body))
            self.over, self._goes_on = False, True
            return b""
        opening = [] if self._begun else list(self._begin(event))
        return self._frames([*opening, *self._handlers[event.type](event, body)])

    def rewind(self, seq: int) -> bytes:
        """See ``edge.ports.Encoder``. Only text is ever taken back."""
        return self._frames(self._rewrite(lambda said: said.seq <= seq or not said.message_id))

    def _frames(self, chunks: Iterable[Chunk]) -> bytes:
        frames = b"".join(map(ui.frame, chunks))
        return frames + ui.DONE_FRAME if self.over else frames

    def _begin(self, event: Event) -> Iterator[Chunk]:
        """Open the message, or go on with it in a step of its own.

        Without one a client that resubmits when the last step's calls have outcomes would do so for ever.
        """
        self._begun = True
        yield ui.start(self._turn_id)
        if self._goes_on:
            yield from self._next_step()

    # --- one function for each type of event ----------------------------------------------------------

    def _turn_start(self, event: Event, body: Body) -> Iterator[Chunk]:
        """P-EVT-3: a further attempt withdraws every message that has deltas and was not settled."""
        self._attempt = body["attempt"]
        withdrawn, self._unsettled = self._unsettled, {}
        yield from self._rewrite(lambda said: said.message_id not in withdrawn)

    def _delta(self, event: Event, body: Body) -> Iterator[Chunk]:
        message_id = body["message_id"]
        if body["text"] and self._streams(message_id):
            kind = ui.TEXT if event.type == types.TOKEN else ui.REASONING
            yield from self._enter_step(message_id)
            self._unsettled[message_id] = None
            if kind == ui.TEXT:
                yield from self._close(event, ui.REASONING, message_id)
            yield from self._write(event, kind, message_id, body["text"])

    def _message(self, event: Event, body: Body) -> Iterator[Chunk]:
        """P-EVT-2: what a settled message says replaces what was streamed of it."""
        message_id, discarded = body["message_id"], body["status"] == "discarded"
        if body["role"] != "agent":
            return
        says = {ui.REASONING: body.get("reasoning", ""), ui.TEXT: ui.text_of(body["parts"])}
        if discarded or not self._may_go_on(message_id, says, truncated="truncated" in body):
            yield from self._rewrite(lambda said: said.message_id != message_id)
        self._unsettled.pop(message_id, None)
        if discarded:
            return
        if any(says.values()):
            yield from self._enter_step(message_id)
        for kind, whole in says.items():
            if tail := whole[len(self._sent(kind, message_id)) :]:
                yield from self._write(event, kind, message_id, tail)
            yield from self._close(event, kind, message_id)
        for part in body["parts"]:
            yield from self._say(event, ui.other_part(part))

    def _tool_start(self, event: Event, body: Body) -> Iterator[Chunk]:
        call_id = body["call_id"]
        self._calls.add(call_id)
        # A call that is the page's own is handed to it, unless it has an outcome by now.
        ours, settled = body["executor"] != "client", call_id in self._known.ended
        if not self._in_step:
            yield from self._next_step()
        yield from self._say(event, [ui.tool_call(body, ours=ours, settled=settled)])

    def _tool_progress(self, event: Event, body: Body) -> Iterator[Chunk]:
        if body["call_id"] in self._calls:
            yield from self._say(event, ui.tool_progress(body))

    def _tool_end(self, event: Event, body: Body) -> Iterator[Chunk]:
        if body["call_id"] in self._calls:
            yield from self._say(event, [ui.tool_outcome(body)])

    def _state(self, event: Event, body: Body) -> Iterator[Chunk]:
        yield from self._say(event, ui.state(body["changes"]))

    def _notice(self, event: Event, body: Body) -> Iterator[Chunk]:
        yield from self._say(event, [ui.data("notice", ui.without_turn(body))])

    def _custom(self, event: Event, body: Body) -> Iterator[Chunk]:
        yield from self._say(event, [ui.data(body["name"], parse_loosely(body["value_json"]))])

    def _suspended(self, event: Event, body: Body) -> Iterator[Chunk]:
        """The client's turn: its request ends here, and its next one brings what was decided."""
        if body["reason"] not in PARKING:
            return
        yield ui.data("suspended", ui.without_turn(body), transient=True)
        if body["reason"] == "input_required":
            asked = [call_id for call_id in body["pending_call_ids"] if call_id in self._calls]
            yield from self._say(event, [ui.approval_request(call_id, body) for call_id in asked])
        yield from self._end_step()
        if event.seq >= self._known.last_seq:  # else it has gone on since
            self.over = True
            yield ui.finish("tool-calls")

    def _done(self, event: Event, body: Body) -> Iterator[Chunk]:
        yield from self._settle_all(event)
        match body["outcome"]:
            case "cancelled":
                yield {"type": "abort", "reason": "cancelled"}
                yield ui.finish(self._major.stopped)
            case "limit":
                yield ui.finish("length")
            case _:
                yield ui.finish("stop")

    def _error(self, event: Event, body: Body) -> Iterator[Chunk]:
        yield from self._settle_all(event)
        yield {"type": "error", "errorText": body.get("user_message") or body["code"]}

    def _settle_all(self, event: Event) -> Iterator[Chunk]:
        self.over = True
        for kind, message_id in list(self._parts):
            yield from self._close(event, kind, message_id)
        yield from self._end_step()

    # --- steps and streamed text ----------------------------------------------------------------------

    def _enter_step(self, message_id: str) -> Iterator[Chunk]:
        """Begin a step for a new message, but not while another one may have to be dropped."""
        known = any(mine == message_id for _, mine in self._parts)
        if not self._in_step or (self._step and not self._unsettled and not known):
            yield from self._next_step()

    def _streams(self, message_id: str) -> bool:
        """Whether to say a message's deltas: not those of a message that is known to be withdrawn."""
        if (self._attempt, message_id) in self._known.settled:
            # A client that can take nothing back is told what the message says in the end.
            return self._major.resets_steps
        return not self._known.has_withdrawn(self._attempt, message_id)

    def _next_step(self) -> Iterator[Chunk]:
        yield from self._end_step()
        self._in_step = True
        yield {"type": "start-step"}

    def _end_step(self) -> Iterator[Chunk]:
        if self._in_step:
            self._in_step = False
            self._step.clear()
            self._parts.clear()
            yield {"type": "finish-step"}

    def _say(self, event: Event, chunks: Iterable[Chunk], message_id: str = "") -> Iterator[Chunk]:
        for chunk in chunks:
            if self._in_step:
                self._note(_Said(event.seq, message_id, chunk))
            yield chunk

    def _note(self, said: _Said) -> None:
        self._step.append(said)
        if not said.message_id:
            return
        kind, _, stage = said.chunk["type"].partition("-")
        key = (kind, said.message_id)
        if stage == "start":
            self._parts.setdefault(key, _Part()).open = True
        elif stage == "delta":
            self._parts[key].pieces.append(said.chunk["delta"])
        else:
            self._parts[key].open = False

    def _rewrite(self, keep: Callable[[_Said], bool]) -> Iterator[Chunk]:
        """Say the current step anew, without what is not to be kept."""
        kept = [said for said in self._step if keep(said)]
        if len(kept) == len(self._step):
            return
        if not self._major.resets_steps:
            raise MustReplay
        self._step.clear()
        self._parts.clear()
        yield {"type": "reset-step"}
        for said in kept:
            self._note(said)
            yield said.chunk

    def _write(self, event: Event, kind: str, message_id: str, text: str) -> Iterator[Chunk]:
        chunks = [ui.text_delta(kind, message_id, text)]
        part = self._parts.get((kind, message_id))
        if part is None or not part.open:
            chunks.insert(0, ui.text_start(kind, message_id))
        yield from self._say(event, chunks, message_id)

    def _close(self, event: Event, kind: str, message_id: str) -> Iterator[Chunk]:
        part = self._parts.get((kind, message_id))
        if part is not None and part.open:
            yield from self._say(event, [ui.text_end(kind, message_id)], message_id)

    def _sent(self, kind: str, message_id: str) -> str:
        part = self._parts.get((kind, message_id))
        return "".join(part.pieces) if part is not None else ""

    def _may_go_on(self, message_id: str, says: Mapping[str, str], *, truncated: bool) -> bool:
        """Whether appending to what was sent of a message makes it what it says."""
        for kind, whole in says.items():
            sent = self._sent(kind, message_id)
            part = self._parts.get((kind, message_id))
            closed = part is not None and not part.open
            if not whole.startswith(sent) and not (truncated and sent.startswith(whole)):
                return False
            if closed and len(whole) > len(sent):
                return False
        return True


@dataclass(frozen=True, slots=True)
class _Known:
    """What a turn has come to by the time that a stream of it begins."""

    attempt: int
    settled: frozenset[tuple[int, str]]
    """``(attempt, message_id)`` of every message that stays."""
    discarded: frozenset[tuple[int, str]]
    ended: frozenset[str]
    last_seq: int

    @classmethod
    def of(cls, recap: Recap) -> _Known:
        attempt = 1
        settled: set[tuple[int, str]] = set()
        discarded: set[tuple[int, str]] = set()
        for event in recap.events:
            if event.type == types.TURN_START:
                attempt = json.loads(event.data)["attempt"]
            elif event.type == types.MESSAGE:
                gone = json.loads(event.data)["status"] == "discarded"
                (discarded if gone else settled).add((attempt, event.subject))
        return cls(
            attempt=attempt,
            settled=frozenset(settled),
            discarded=frozenset(discarded),
            ended=frozenset(e.subject for e in recap.events if e.type == types.TOOL_END),
            last_seq=recap.events[-1].seq,
        )

    def has_withdrawn(self, attempt: int, message_id: str) -> bool:
        """Whether a message that is not settled will not be any more."""
        return attempt < self.attempt or (attempt, message_id) in self.discarded


def encoder(major: Major) -> Callable[[Recap, int], TurnEncoder]:
    """Return what makes encoders for one major."""
    return lambda recap, after_seq: TurnEncoder(recap, after_seq, major=major)
