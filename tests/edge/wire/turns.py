"""Logs for tests of browser formats: a few events of a turn, written as one says them.

Knows nothing of formats. The shapes are those of PROTOCOL.md, section "Events".
"""

from __future__ import annotations

from edge.core.event import Event, compact_json

COALESCABLE = ("token", "reasoning", "tool_progress")


class Log:
    """Events with rising seqs. Every method returns the log, so that calls can be chained."""

    def __init__(self, seq: int = 0, turn_id: str = "t1") -> None:
        self.events: list[Event] = []
        self._seq = seq
        self._turn_id = turn_id

    def add(self, type_: str, **body: object) -> Log:
        self._seq += 1
        subject = body.get("call_id") or body.get("message_id") or ""
        data = compact_json({"turn_id": self._turn_id, **body})
        structural = type_ not in COALESCABLE
        self.events.append(Event(1, self._seq, type_, data, str(subject), structural))
        return self

    def cut(self, seq: int) -> Log:
        """Lose every event after ``seq``: what comes next has its numbers."""
        self.events = [event for event in self.events if event.seq <= seq]
        self._seq = seq
        return self

    def start_turn(self, turn_id: str, words: str = "Hi") -> Log:
        self._turn_id = turn_id
        parts = [{"type": "text", "text": words}]
        return self.add("turn_start", attempt=1, agent="", message_id="u-1", input=parts)

    def attempt(self, number: int) -> Log:
        return self.add("turn_start", attempt=number, agent="")

    def token(self, message_id: str, text: str) -> Log:
        return self.add("token", message_id=message_id, text=text)

    def reasoning(self, message_id: str, text: str) -> Log:
        return self.add("reasoning", message_id=message_id, text=text)

    def message(self, message_id: str, text: str, status: str = "complete", **more: str) -> Log:
        parts = [{"type": "text", "text": text}] if text else []
        body = {"message_id": message_id, "role": "agent", "parts": parts, "status": status}
        return self.add("message", **body, **more)

    def tool(self, call_id: str, **more: str) -> Log:
        arguments = '{"id":9007199254740993}'
        body = {
            "call_id": call_id,
            "name": "act",
            "arguments_json": arguments,
            "executor": "runtime",
        }
        return self.add("tool_start", **body, **more)

    def tool_end(self, call_id: str, outcome: str, **more: object) -> Log:
        return self.add("tool_end", call_id=call_id, outcome=outcome, **more)

    def suspend(self, reason: str, *call_ids: str, **more: str) -> Log:
        return self.add("suspended", reason=reason, pending_call_ids=list(call_ids), **more)


def start() -> Log:
    """Return a log with the start of a turn."""
    return Log().start_turn("t1")
