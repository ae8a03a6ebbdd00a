"""The snapshot: a session as a page needs it to draw itself, taken with the cursor it ends at.

Knows nothing of journals. It is a fold over the log like every other reader's, so what a page draws from it
equals what it would have drawn from the events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from edge.core.errors import LogBroken
from edge.core.event import (
    DONE,
    ERROR,
    MESSAGE,
    REASONING,
    STATE,
    SUSPENDED,
    TOKEN,
    TOOL_END,
    TOOL_PROGRESS,
    TOOL_START,
    TURN_START,
    Event,
)
from edge.core.log import AnyRecord, Cancel, Events, LogView
from edge.core.session import cursor_at


class Snapshot:
    """Folds records, in slot order, into turns of items."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._start_again()

    def _start_again(self) -> None:
        self._view = LogView()
        self._turns: dict[str, dict[str, Any]] = {}
        self._state: dict[str, str] = {}
        self._items: dict[tuple[str, str], dict[str, Any]] = {}  # (turn, subject) -> item

    def apply(self, records: Iterable[AnyRecord]) -> None:
        """Take in the next records. What lies before a hole counts as gone, as it does for streams."""
        for record in records:
            try:
                self._view.apply(record)
            except LogBroken:
                self._start_again()
                self._view.apply(record)
            if isinstance(record, Events):
                for event in record.events:
                    self._apply_event(event)
            elif isinstance(record, Cancel):
                self._cancel(record.turn_id)

    def _cancel(self, turn_id: str) -> None:
        turn = self._turns.get(turn_id)
        if turn is not None and turn["state"] != "finished":
            turn["state"] = "cancelling"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON-ready snapshot; its shape is in PROTOCOL.md."""
        turns = self._turns.values()
        return {
            "session_id": self._session_id,
            "cursor": str(cursor_at(self._view.epoch_starts, self._view.last_seq)),
            "first_seq": self._view.first_seq,
            "turns": [{**turn, "items": [_whole(i) for i in turn["items"]]} for turn in turns],
            "state": self._state,
        }

    def _apply_event(self, event: Event) -> None:
        body = json.loads(event.data)
        turn_id = body.pop("turn_id")
        if event.type == TURN_START:
            self._start(turn_id, body)
        elif event.type == STATE:
            self._change_state(body["changes"])
        if turn := self._turns.get(turn_id):
            self._apply_to_turn(turn, event, body)

    def _start(self, turn_id: str, body: dict[str, Any]) -> None:
        turn = self._turns.setdefault(turn_id, {"turn_id": turn_id, **body, "items": []})
        turn |= {"attempt": body["attempt"], "state": "running"}
        turn.pop("suspended", None)
        # A new attempt withdraws every message that was not settled.
        turn["items"] = [item for item in turn["items"] if item.get("status") != "streaming"]
        self._items = {k: i for k, i in self._items.items() if i.get("status") != "streaming"}

    def _apply_to_turn(self, turn: dict[str, Any], event: Event, body: dict[str, Any]) -> None:
        if event.type in (TOKEN, REASONING):
            part = "text" if event.type == TOKEN else "reasoning"
            item = self._item(turn, event, {"type": MESSAGE, "message_id": event.subject})
            item["status"] = "streaming"
            item.setdefault(part, []).append(body["text"])  # joined when it is asked for
        elif event.type == MESSAGE:
            item = self._item(turn, event, {})
            item.clear()
            item |= {"type": MESSAGE, **body}
        elif event.type in (TOOL_START, TOOL_PROGRESS, TOOL_END):
            item = self._item(turn, event, {"type": "tool_call"})
            item |= {"progress": body} if event.type == TOOL_PROGRESS else body
        elif event.type == SUSPENDED:
            turn |= {"state": "suspended", "suspended": body}
        elif event.type in (DONE, ERROR):
            turn |= {"state": "finished", "outcome": "failed", **body}
        elif event.type not in (TURN_START, STATE):
            turn["items"].append({"type": event.type, **body})

    def _item(self, turn: dict[str, Any], event: Event, fresh: dict[str, Any]) -> dict[str, Any]:
        key = (turn["turn_id"], f"{event.type in (TOKEN, REASONING, MESSAGE)}:{event.subject}")
        if key not in self._items:
            self._items[key] = fresh
            turn["items"].append(fresh)
        return self._items[key]

    def _change_state(self, changes: Iterable[dict[str, Any]]) -> None:
        for change in changes:
            if change.get("removed"):
                self._state.pop(change["key"], None)
            else:
                self._state[change["key"]] = change["value_json"]


def _whole(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item with its streamed text joined."""
    return {k: "".join(v) if k in ("text", "reasoning") else v for k, v in item.items()}
