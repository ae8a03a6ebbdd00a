"""Conversations as an edge may tell them: a log that grows, what is shown ahead of it, and what a page must show.

Knows nothing of the page. ``screen`` looks at whole runs of events and folds nothing, so that it cannot share a
mistake with the reducer that it judges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from edge.core import drafts
from edge.core.event import (
    CUSTOM,
    DELTAS,
    DONE,
    ERROR,
    MESSAGE,
    NOTICE,
    REASONING,
    STATE,
    SUSPENDED,
    TERMINAL,
    TOKEN,
    TOOL_END,
    TOOL_PROGRESS,
    TOOL_START,
    TURN_START,
    Draft,
    Event,
    compact_json,
)
from edge.core.turn import Turn
from tests.core.log_builder import LogBuilder, numbered

KINDS = [TOKEN, REASONING, MESSAGE, TOOL_START, TOOL_PROGRESS, TOOL_END, NOTICE, CUSTOM, STATE]
ENDS = [DONE, ERROR]
AGENT = "helper"


class Talk:
    """One session: turns, attempts, messages and calls as the protocol allows them."""

    def __init__(self) -> None:
        self.log = LogBuilder()
        self.log.acquire("edge-0")
        self.ahead: list[Draft] = []
        self._session = self.log.session()
        self.said = 0
        self.between = False
        """Whether the open turn needs a further attempt before it says anything."""

    @property
    def shown(self) -> list[Event]:
        """Every event that the owner shows."""
        view = self.log.view
        return [*self.log.events, *numbered(self.ahead, view.last_seq + 1, view.epoch)]

    @property
    def turn(self) -> Turn | None:
        """The turn that has not ended, as far as it is shown."""
        return self._session.turn if self._session.busy else None

    def _show(self, made: Draft) -> None:
        self.ahead.append(made)
        self._session.apply_event(self.shown[-1])

    def says(self, kind: str, number: int) -> None:
        """Say something of a kind, about the message or call that ``number`` picks; begin what must have begun."""
        turn = self.turn
        if turn is None:
            self._begin()
        elif self.between:
            self._commit(drafts.turn_start(turn.turn_id, AGENT, attempt=turn.attempt + 1))
        else:
            self.said += 1
            self._say(turn, kind, number)

    def _say(self, turn: Turn, kind: str, number: int) -> None:
        if kind in DELTAS:
            message_id = self._picked(list(turn.deltas), number) or f"m{self.said}"
            body = {"message_id": message_id, "text": f"{kind} {self.said} "}
            self._show(draft(turn, kind, message_id, structural=False, **body))
        elif kind == MESSAGE:
            message_id = self._picked(list(turn.deltas), number) or f"m{self.said}"
            self._commit(settled(turn, message_id, f"settled {self.said}", "complete"))
        elif kind in (TOOL_PROGRESS, TOOL_END):
            self._go_on(turn, kind, number)
        elif kind == TOOL_START:
            self._commit(self._call(turn))
        elif kind == NOTICE:
            error = {"reason": "R", "user_message": f"notice {self.said}"}
            about = self._picked(list(turn.deltas), number) or "m1"
            self._commit(draft(turn, kind, error=error, message_id=about))
        elif kind == CUSTOM:
            self._commit(draft(turn, kind, name="n", value_json="1"))
        else:
            self._commit(draft(turn, STATE, changes=[{"key": "k", "value_json": str(self.said)}]))

    def _begin(self) -> None:
        self.said += 1
        self.between = False
        parts = [{"type": "text", "text": "Hi"}]
        policy = {"on_disconnect": "continue", "pacing": "free"}
        turn_id = f"t{self.said}"
        start = drafts.turn_start(turn_id, AGENT, attempt=1, user_input=parts, policy=policy)
        self._commit(start)

    def _call(self, turn: Turn) -> Draft:
        rest: dict[str, Any] = {
            "arguments_json": "{}",
            "executor": "runtime",
            "replay_safety": "unsafe",
        }
        call_id = f"c{self.said}"
        return draft(turn, TOOL_START, call_id, call_id=call_id, name=f"tool {self.said}", **rest)

    def _go_on(self, turn: Turn, kind: str, number: int) -> None:
        call_id = self._picked(list(turn.calls), number)
        if call_id is None:
            return
        if kind == TOOL_END:
            self._commit(ended(turn, call_id, "succeeded"))
        else:
            body = {"call_id": call_id, "message": f"progress {self.said}"}
            self._show(draft(turn, kind, call_id, structural=False, **body))

    def parks(self) -> None:
        """Ask a person, or hand the turn on."""
        turn = self.turn
        if turn is not None and not self.between:
            reason = "input_required" if turn.calls else "checkpoint"
            self._commit(draft(turn, SUSPENDED, reason=reason, pending_call_ids=list(turn.calls)))
            self.between = True

    def ends(self, kind: str) -> None:
        """End the turn, after what is open in it."""
        turn = self.turn
        if turn is None:
            return
        status = "complete" if kind == DONE else "incomplete"
        self._commit(
            *[settled(turn, message_id, "the rest", status) for message_id in turn.deltas],
            *[ended(turn, call_id, "unknown") for call_id in turn.calls],
            draft(turn, DONE, outcome="completed")
            if kind == DONE
            else draft(turn, ERROR, code="x", retryable=False),
        )

    def commits_tokens(self) -> None:
        self._commit()

    def is_taken_over(self) -> None:
        """The owner dies with what it had not committed; the next one opens a further attempt."""
        self.ahead.clear()
        self.log.acquire(f"edge-{self.log.view.epoch}")
        self._session = self.log.session()
        self.between = self.turn is not None

    def _commit(self, *structural: Draft) -> None:
        for made in structural:
            self._show(made)
        if self.ahead:
            self.log.write(*self.ahead)
        self.ahead.clear()
        self.between = self.between and not any(d.type == TURN_START for d in structural)

    def _picked(self, ids: list[str], number: int) -> str | None:
        """Return one of those that are there, or none of them."""
        return ids[number] if number < len(ids) else None


def draft(
    turn: Turn, kind: str, subject: str = "", *, structural: bool = True, **body: object
) -> Draft:
    return Draft(kind, compact_json({"turn_id": turn.turn_id, **body}), subject, structural)


def settled(turn: Turn, message_id: str, text: str, status: str) -> Draft:
    parts = [{"type": "text", "text": text}]
    body: dict[str, Any] = {"message_id": message_id, "role": "agent", "parts": parts}
    body |= {"status": status}
    return draft(turn, MESSAGE, message_id, **body)


def ended(turn: Turn, call_id: str, outcome: str) -> Draft:
    return draft(turn, TOOL_END, call_id, call_id=call_id, outcome=outcome)


def screen(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return what a page shows that has exactly these events, and had no others before."""
    told = [(event.type, json.loads(event.data)) for event in events]
    ids = dict.fromkeys(body["turn_id"] for kind, body in told if kind == TURN_START)
    starts = {
        i: [n for n, (k, b) in enumerate(told) if (k, b["turn_id"]) == (TURN_START, i)] for i in ids
    }
    return [
        _turn(turn_id, [e for e in told[starts[turn_id][0] :] if e[1]["turn_id"] == turn_id])
        for turn_id in ids
    ]


Told = list[tuple[str, dict[str, Any]]]


def _turn(turn_id: str, told: Told) -> dict[str, Any]:
    kinds = [kind for kind, _ in told]
    end = next((body for kind, body in told if kind in TERMINAL), None)
    last_start = max(n for n, kind in enumerate(kinds) if kind == TURN_START)
    waits = [body for kind, body in told[last_start:] if kind == SUSPENDED and end is None]
    parked = bool(waits) and waits[-1]["reason"] == "input_required"
    pending = waits[-1]["pending_call_ids"] if parked else []
    items = [*_messages(told), *_calls(told, pending), *_notices(told)]
    return {
        "id": turn_id,
        "finished": end and end.get("outcome", "failed"),
        "parked": parked,
        "items": [item for _, item in sorted(items, key=lambda placed: placed[0])],
    }


def _messages(told: Told) -> Iterator[tuple[int, list[Any]]]:
    """A message stands where its newest attempt first spoke of it; its own text replaces its tokens."""
    starts = [n for n, (kind, _) in enumerate(told) if kind == TURN_START]
    spoken = [(n, k, b) for n, (k, b) in enumerate(told) if k in (*DELTAS, MESSAGE)]
    for message_id in dict.fromkeys(b["message_id"] for _, _, b in spoken):
        mine = [(n, k, b) for n, k, b in spoken if b["message_id"] == message_id]
        whole = next(((n, b) for n, k, b in mine if k == MESSAGE), None)
        until = whole[0] if whole else len(told)
        since = max(n for n in starts if n < until)
        live = [(n, k, b) for n, k, b in mine if since < n <= until]
        if whole:
            text = "".join(part["text"] for part in whole[1]["parts"])
            yield live[0][0], [message_id, text, whole[1]["status"]]
        elif live:
            tokens = [b["text"] for _, k, b in live if k == TOKEN]
            yield live[0][0], [message_id, "".join(tokens), "streaming"]


def _calls(told: Told, pending: list[str]) -> Iterator[tuple[int, list[Any]]]:
    """A call is one card, from the first that is known of it: its start may have expired."""
    spoken = [(n, k, b) for n, (k, b) in enumerate(told) if "call_id" in b]
    for call_id in dict.fromkeys(b["call_id"] for _, _, b in spoken):
        mine = [(n, k, b) for n, k, b in spoken if b["call_id"] == call_id]
        name = next((b["name"] for _, k, b in mine if k == TOOL_START), None)
        outcome = next((b["outcome"] for _, k, b in mine if k == TOOL_END), None)
        progress = [b["message"] for _, k, b in mine if k == TOOL_PROGRESS and not outcome]
        newest = progress[-1] if progress else None
        asked = call_id in pending and not outcome
        yield mine[0][0], [call_id, name, outcome, newest, asked]


def _notices(told: Told) -> Iterator[tuple[int, list[Any]]]:
    for n, (kind, body) in enumerate(told):
        if kind == NOTICE:
            yield n, ["notice", body["error"]["user_message"]]
