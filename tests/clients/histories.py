"""Random histories of a session, with everything that can be taken back: attempts, messages, tokens.

Knows nothing of browser formats. A history is a list of events and of seqs; a seq stands for a rewind to it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from edge.core.event import Event
from tests.edge.wire.turns import Log

History = list[Event | int]
WORDS = ("one ", "zwei ", "trois\n", "四 ", "\U0001f600 ", '"six" ')
OUTCOMES = ("succeeded", "failed", "unknown", "not_executed")


class Maker:
    """Plays one session; ``steps`` is what a viewer was told."""

    def __init__(self, chance: random.Random) -> None:
        self.steps: History = []
        self._chance = chance
        self._log = Log()
        self._said: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self._settled: set[str] = set()
        self._calls: list[str] = []
        self._count = 0
        self._attempt = 1
        self._safe_seq = 0

    def play(self, turns: int) -> History:
        actions: list[Callable[[], None]] = [self._say] * 5 + [self._settle] * 3
        actions += [self._call, self._call, self._return, self._change, self._retry, self._rewind]
        actions += [self._park, self._overhear]
        for number in range(turns):
            self._begin(f"t{number}")
            for _ in range(self._chance.randrange(14)):
                self._chance.choice(actions)()
            self._end()
        return self.steps

    def _tell(self, type_: str, **body: object) -> None:
        event = self._log.add(type_, **body).events[-1]
        self.steps.append(event)
        self._safe_seq = event.seq if event.structural else self._safe_seq

    def _begin(self, turn_id: str) -> None:
        self._log.start_turn(turn_id)
        self.steps.append(self._log.events[-1])
        self._safe_seq = self._log.events[-1].seq
        self._settled, self._attempt, self._count = set(), 1, 0

    def _say(self) -> None:
        message_id = f"m{self._chance.randrange(3)}"
        if message_id in self._settled:
            return
        kind, words = (
            self._chance.choice(("token", "reasoning", "token")),
            self._chance.choice(WORDS),
        )
        self._tell(kind, message_id=message_id, text=words)
        self._said.setdefault((kind, message_id), []).append((self._log.events[-1].seq, words))

    def _settle(self, message_id: str = "", status: str = "") -> None:
        message_id = message_id or f"m{self._chance.randrange(3)}"
        if message_id in self._settled:
            return
        self._settled.add(message_id)
        status = status or self._chance.choice(("complete", "complete", "discarded"))
        text = self._whole("token", message_id)
        parts = [{"type": "text", "text": text}] if text else []
        body = {"message_id": message_id, "role": "agent", "parts": parts, "status": status}
        reasoning = self._whole("reasoning", message_id)
        author = self._chance.choice(({}, {"author": "helper"}))
        self._tell("message", **body, **author, **({"reasoning": reasoning} if reasoning else {}))

    def _overhear(self) -> None:
        """Let the user say something amid the turn."""
        message_id = f"m{self._chance.randrange(3)}"
        if message_id in self._settled or any(said == message_id for _, said in self._said):
            return
        self._settled.add(message_id)
        parts = [{"type": "text", "text": self._chance.choice(WORDS)}]
        body = {"message_id": message_id, "role": "user", "parts": parts, "status": "complete"}
        self._tell("message", **body)

    def _whole(self, kind: str, message_id: str) -> str:
        said = "".join(text for _, text in self._said.pop((kind, message_id), []))
        return (
            said + self._chance.choice(("", "", "and more"))
            if self._chance.random() < 0.8
            else "else"
        )

    def _call(self) -> None:
        self._count += 1
        self._calls.append(f"c{self._count}")
        parent = self._chance.choice(({}, {"message_id": f"m{self._chance.randrange(3)}"}))
        shape = {"name": "act", "arguments_json": '{"n":1}', "executor": "runtime"}
        self._tell("tool_start", call_id=self._calls[-1], **shape, **parent)

    def _return(self) -> None:
        if self._calls:
            call_id = self._calls.pop(self._chance.randrange(len(self._calls)))
            outcome = self._chance.choice(OUTCOMES)
            self._tell("tool_end", call_id=call_id, outcome=outcome, result_json='{"r":2}')

    def _change(self) -> None:
        key = self._chance.choice(("a", "b/c", "~d"))
        change = self._chance.choice(
            ({"value_json": str(self._chance.randrange(9))}, {"removed": True})
        )
        self._tell("state", changes=[{"key": key, **change}])

    def _retry(self) -> None:
        self._attempt += 1
        self._tell("turn_start", attempt=self._attempt, agent="")
        self._said.clear()

    def _park(self) -> None:
        if self._calls:
            reason = self._chance.choice(("input_required", "client_tool", "checkpoint"))
            self._tell("suspended", reason=reason, pending_call_ids=list(self._calls))
            self._retry()

    def _rewind(self) -> None:
        """Take back some of what no structural event stands behind."""
        last = self._log.events[-1].seq
        to = self._chance.randint(self._safe_seq, last)
        if to == last:
            return
        self.steps.append(to)
        self._log.cut(to)
        for pieces in self._said.values():
            pieces[:] = [piece for piece in pieces if piece[0] <= to]

    def _end(self) -> None:
        for _, message_id in list(self._said):
            self._settle(message_id, "incomplete")
        while self._calls:
            self._return()
        ends: tuple[tuple[str, dict[str, object]], ...] = (
            ("done", {"outcome": "completed"}),
            ("done", {"outcome": "cancelled"}),
            ("done", {"outcome": "limit"}),
            ("error", {"code": "runtime_error", "retryable": False}),
        )
        type_, body = self._chance.choice(ends)
        self._tell(type_, **body)
        self._said.clear()


def survivors(history: History) -> list[Event]:
    """Return the events that the journal has in the end."""
    kept: list[Event] = []
    for step in history:
        if isinstance(step, Event):
            kept.append(step)
        else:
            kept = [event for event in kept if event.seq <= step]
    return kept
