"""AG-UI: a session's events as the runs of a thread, for ``@ag-ui/client`` and CopilotKit.

Knows nothing of HTTP, sockets or journals. A fold over the log: equal logs give equal frames, live or
replayed, on every edge. AG-UI has no cursor, so a client that comes back gets everything anew.

A turn is one run; one that waits for a person is as many as it was continued. Ids of messages and
calls are unique in a turn here and in a thread there, so they carry their turn's id in front.

Invariant: no run is opened within a run, and none is closed with a message open: AG-UI's client
gives up on either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from edge.core import event as types
from edge.core.event import PARKING, Event
from edge.wire import ag_ui_events as ag
from edge.wire.ag_ui_events import AgUiEvent, Kind
from edge.wire.ag_ui_thread import Thread
from edge.wire.loose_json import parse_loosely

Body = Mapping[str, Any]

_LIMITED = "The agent reached a limit."
_FAILED = "The agent failed."


@dataclass(slots=True)
class _Shown:
    """A message under way: what of it the client has."""

    kind: Kind
    message_id: str
    pieces: list[tuple[int, str]] = field(default_factory=list)
    """``(seq, text)`` of each delta, so that a rewind can take some back."""
    open: bool = False

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)


class AgUiFold:
    """Turns events into those of AG-UI. ``apply`` takes all events of the log, oldest first."""

    def __init__(self, thread_id: str, *, declares_version: bool, anew: bool) -> None:
        """``declares_version``: the client speaks 1.0, where older ones refuse its newer outcomes.

        ``anew``: whatever the client shows of the thread is replaced by what follows.
        """
        self.run_open = False
        self.thread = Thread()
        self._thread_id = thread_id
        self._declares_version = declares_version
        self._clear_messages = self._clear_reasoning = anew
        self._turn_id = ""
        self._run_id = ""
        self._under_way: dict[str, _Shown] = {}
        self._handlers: dict[str, Callable[[Event, Body], Iterator[AgUiEvent]]] = {
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

    def apply(self, event: Event) -> list[AgUiEvent]:
        """Return what the next event of the log is to an AG-UI client."""
        body = json.loads(event.data)
        told = []
        for said in self._run(event, body):
            self.thread.apply(said)
            told.append(said)
        return told

    def rewind(self, seq: int) -> list[AgUiEvent]:
        """Take back every delta after ``seq``: it did not survive its writer."""
        lost = [s for s in self._under_way.values() if s.pieces and s.pieces[-1][0] > seq]
        if not lost:
            return []
        told: list[AgUiEvent] = []
        for shown in lost:
            shown.pieces = [piece for piece in shown.pieces if piece[0] <= seq]
            if shown.pieces:
                self.thread.replace(shown.message_id, shown.text)
            else:
                told += self._withdraw(shown)
        return [*told, ag.messages_snapshot(self.thread.messages())]

    def _run(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        """Open a run if none is, which can be anywhere: the start of a log may have expired."""
        if event.type == types.SUSPENDED and body["reason"] not in PARKING:
            return
        if not self.run_open:
            yield from self._open_run(event, body)
        yield from self._handlers[event.type](event, body)

    def _open_run(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        turn_id = body["turn_id"]
        continued = turn_id == self._turn_id
        self._turn_id, self._run_id = turn_id, f"{turn_id}.{event.seq}" if continued else turn_id
        self.run_open = True
        asked = [_user_message(turn_id, body)] if "input" in body else []
        yield ag.run_started(self._thread_id, self._run_id, asked)
        if self._clear_messages:
            self._clear_messages = False
            yield ag.messages_snapshot(self.thread.messages())
            yield ag.state_snapshot()

    def _close_run(self) -> Iterator[AgUiEvent]:
        for shown in self._under_way.values():
            yield from _end(shown)
        self.run_open = False

    # --- one function for each type of event ----------------------------------------------------------

    def _turn_start(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        """P-EVT-3: a further attempt withdraws every message that has deltas and was not settled."""
        withdrawn = [shown for shown in self._under_way.values() if shown.pieces]
        for shown in withdrawn:
            yield from self._withdraw(shown)
        self._under_way.clear()
        if withdrawn:
            yield ag.messages_snapshot(self.thread.messages())

    def _delta(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        if not body["text"]:
            return
        kind = Kind.TEXT if event.type == types.TOKEN else Kind.REASONING
        if kind is Kind.TEXT:
            yield from _end(self._shown(Kind.REASONING, body))
        shown = self._shown(kind, body)
        yield from self._open(shown, body)
        shown.pieces.append((event.seq, body["text"]))
        yield ag.message_content(kind, shown.message_id, body["text"])

    def _message(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        """P-EVT-2: what a settled message says replaces what was streamed of it."""
        text = "".join(part["text"] for part in body["parts"] if part["type"] == "text")
        gone = body["status"] == "discarded"
        says = {Kind.REASONING: body.get("reasoning", ""), Kind.TEXT: text}
        for kind, whole in says.items():
            yield from self._settle(self._shown(kind, body), "" if gone else whole, body)
        rest = [part for part in body["parts"] if part["type"] != "text"]
        if rest and not gone:
            message_id = self._id(body["message_id"])
            yield ag.custom("unbroken.parts", {"messageId": message_id, "parts": rest})

    def _settle(self, shown: _Shown, whole: str, body: Body) -> Iterator[AgUiEvent]:
        self._under_way.pop(shown.message_id, None)
        sent = shown.text
        if whole.startswith(sent):
            if tail := whole[len(sent) :]:
                yield from self._open(shown, body)
                yield ag.message_content(shown.kind, shown.message_id, tail)
            yield from _end(shown)
            return
        yield from _end(shown)
        if whole:
            self.thread.replace(shown.message_id, whole)
        else:
            self.thread.withdraw(shown.kind, shown.message_id)
        yield ag.messages_snapshot(self.thread.messages())

    def _tool_start(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        message_id = self._id(body["message_id"]) if "message_id" in body else None
        call_id, arguments = self._id(body["call_id"]), body["arguments_json"]
        yield from ag.tool_call(call_id, body["name"], arguments, message_id)

    def _tool_progress(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        told = {"toolCallId": self._id(body["call_id"]), "message": body["message"]}
        if "fraction" in body:
            told["fraction"] = body["fraction"]
        if "preliminary_result_json" in body:
            told["result"] = parse_loosely(body["preliminary_result_json"])
        yield ag.custom("unbroken.tool_progress", told)

    def _tool_end(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        names = ("outcome", "error", "duration_ms")
        told = {name: body[name] for name in names if name in body}
        failure = {"outcome": body["outcome"], **body.get("error", {})}
        succeeded = body["outcome"] == "succeeded"
        content = body.get("result_json", "") if succeeded else types.compact_json(failure)
        yield ag.tool_result(self._id(body["call_id"]), content, told)

    def _state(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        yield ag.state_delta(body["changes"])

    def _notice(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        about = {"message_id": "messageId", "call_id": "toolCallId"}
        told = {name: self._id(body[key]) for key, name in about.items() if key in body}
        yield ag.custom("unbroken.notice", {"error": body["error"], **told})

    def _custom(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        yield ag.custom(body["name"], parse_loosely(body["value_json"]))

    def _suspended(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        """The run ends, and the turn waits: for a person's answer, or for a tool of the page's own."""
        pending = [self._id(call_id) for call_id in body["pending_call_ids"]]
        if body["reason"] == "input_required" and pending:
            interrupts = [_interrupt(call_id, body) for call_id in pending]
            yield from self._finish({"type": "interrupt", "interrupts": interrupts}, body)
        else:
            left = {"pendingToolCallIds": pending} if self._declares_version and pending else {}
            yield from self._finish({"type": "success", **left}, body)

    def _done(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        outcome = body["outcome"]
        if outcome == "limit":
            told = body.get("error", {}).get("user_message", _LIMITED)
            yield from self._fail(told, "limit", body)
        elif outcome == "completed":
            yield from self._finish({"type": "success"}, body)
        else:
            # Before 1.0 there was no such outcome, and a client refuses what it does not know.
            yield from self._finish({"type": "cancelled"} if self._declares_version else None, body)

    def _error(self, event: Event, body: Body) -> Iterator[AgUiEvent]:
        yield from self._fail(body.get("user_message", _FAILED), body["code"], body)

    def _finish(self, outcome: Body | None, body: Body) -> Iterator[AgUiEvent]:
        yield from self._close_run()
        yield ag.run_finished(self._thread_id, self._run_id, outcome, _usage(body))

    def _fail(self, message: str, code: str, body: Body) -> Iterator[AgUiEvent]:
        yield from self._close_run()
        yield ag.run_error(message, code, _usage(body))

    # --- messages under way ---------------------------------------------------------------------------

    def _shown(self, kind: Kind, body: Body) -> _Shown:
        message_id = self._id(body["message_id"])
        if kind is Kind.REASONING:
            message_id += ".reasoning"
        return self._under_way.setdefault(message_id, _Shown(kind, message_id))

    def _open(self, shown: _Shown, body: Body) -> Iterator[AgUiEvent]:
        if shown.open:
            return
        shown.open = True
        role = "user" if body.get("role") == "user" else "assistant"
        opening = ag.message_start(shown.kind, shown.message_id, role, body.get("author"))
        if shown.kind is Kind.REASONING and self._clear_reasoning:
            # A client keeps the reasoning it has until a snapshot brings some.
            self._clear_reasoning = False
            empty = {"id": shown.message_id, "role": "reasoning", "content": ""}
            yield ag.messages_snapshot([*self.thread.messages(), empty])
        yield from opening

    def _withdraw(self, shown: _Shown) -> Iterator[AgUiEvent]:
        """Close a message and forget it; a snapshot must follow."""
        yield from _end(shown)
        self.thread.withdraw(shown.kind, shown.message_id)

    def _id(self, local_id: str) -> str:
        return name_in_thread(self._turn_id, local_id)


def name_in_thread(turn_id: str, local_id: str) -> str:
    """Return what a thread calls a message or call of a turn: their own ids are unique in the turn only."""
    return f"{turn_id}.{local_id}"


def _end(shown: _Shown) -> list[AgUiEvent]:
    if not shown.open:
        return []
    shown.open = False
    return ag.message_end(shown.kind, shown.message_id)


def _user_message(turn_id: str, body: Body) -> AgUiEvent:
    """Return what the user said, under the id that the user's client gave it, if it did."""
    message_id = body.get("message_id", f"{turn_id}.input")
    return {"id": message_id, "role": "user", "content": _content(body["input"])}


def _content(parts: Iterable[Body]) -> str | list[AgUiEvent]:
    told = [_part(part) for part in parts]
    if all(part["type"] == "text" for part in told):
        return "".join(part["text"] for part in told)
    return told


def _part(part: Body) -> AgUiEvent:
    match part["type"]:
        case "file":
            source = {"type": "url", "value": part["uri"], "mimeType": part["media_type"]}
            return {"type": _medium(part["media_type"]), "source": source}
        case "data":
            return {"type": "text", "text": part["data_json"]}
        case _:
            return {"type": "text", "text": part["text"]}


def _medium(media_type: str) -> str:
    family = media_type.partition("/")[0]
    return family if family in ("image", "audio", "video") else "document"


def _interrupt(call_id: str, body: Body) -> AgUiEvent:
    interrupt: AgUiEvent = {"id": call_id, "reason": body["reason"], "toolCallId": call_id}
    if "prompt" in body:
        interrupt["message"] = body["prompt"]
    schema = parse_loosely(body.get("response_schema_json", ""))
    return interrupt | ({"responseSchema": schema} if isinstance(schema, dict) else {})


_USAGE = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "reasoning_tokens": "reasoningTokens",
    "cached_input_tokens": "cachedInputTokens",
}


def _usage(body: Body) -> AgUiEvent | None:
    counts = body.get("usage", {})
    return {name: counts[key] for key, name in _USAGE.items() if key in counts} or None
