"""One attempt of a turn as the scripted runtime runs it: emits, gates, tools, questions.

Knows nothing of scripts or of links. It follows PROTOCOL.md: a body starts only behind its gate or on
leave to run, a gate that was closed never opens, and an abandoned attempt says nothing more.
All of it runs in virtual time, in its runtime's process.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from edge.core.event import (
    DONE,
    MESSAGE,
    SUSPENDED,
    TOKEN,
    TOOL_END,
    TOOL_START,
    Draft,
    Event,
    compact_json,
)
from edge.ports import AttemptCall

HOLD_SECONDS = 6.0
PENDING = "pending"
"""A call that waits for the next attempt."""

Run = Callable[["Attempt", str, str], None]
"""Told when a tool body starts: its attempt, its call and its replay safety."""


class Suspend(Exception):
    """Ends the attempt with ``suspended``."""

    def __init__(self, reason: str, call_ids: Sequence[str] = ()) -> None:
        self.reason = reason
        self.call_ids = list(call_ids)


class Attempt:
    """What a script has of its turn."""

    def __init__(
        self, call: AttemptCall, *, send: Callable[[list[Draft]], None], on_run: Run, suspends: bool
    ) -> None:
        self.call = call
        self.turn_id = call.ref.turn_id
        self.cancelled = False
        self._send = send
        self._on_run = on_run
        self._suspends = suspends
        """Checkpoint mode SUSPEND: every gated call waits for the next attempt."""
        self._mine = [e for e in call.history if _turn_of(e) == self.turn_id]
        self._sealed = False
        self._index = 0
        self._acked = 0
        self._gate_closed = False
        self._gates: dict[int, asyncio.Future[None]] = {}
        self._pack: list[Draft] = []

    # --- what the script does -------------------------------------------------------------------------

    async def say(self, message_id: str, words: Sequence[str], every_seconds: float) -> None:
        """Stream a message word by word, unless an earlier attempt settled it."""
        if self._had(MESSAGE, message_id) is not None:
            return
        said = []
        for word in words:
            if self.cancelled:
                break
            self._emit(TOKEN, {"message_id": message_id, "text": word}, subject=message_id)
            said.append(word)
            await asyncio.sleep(every_seconds)
        parts = [{"type": "text", "text": "".join(said)}]
        status = "incomplete" if self.cancelled else "complete"
        body: dict[str, object] = {"message_id": message_id, "role": "agent"}
        self._emit(MESSAGE, body | {"parts": parts, "status": status}, subject=message_id)

    def babble(self, message_id: str, words: Sequence[str]) -> None:
        """Begin a message that will never be settled, unless it was already."""
        if self._had(MESSAGE, message_id) is None:
            for word in words:
                self._emit(TOKEN, {"message_id": message_id, "text": word}, subject=message_id)

    async def tools(self, calls: Sequence[tuple[str, float, str]]) -> None:
        """Run tools at once, given as call id, seconds and replay safety; suspend if one waits."""
        outcomes = await asyncio.gather(*(self._tool(*call) for call in calls))
        waiting = [
            call[0] for call, outcome in zip(calls, outcomes, strict=True) if outcome == PENDING
        ]
        if waiting:
            raise Suspend("checkpoint", waiting)

    def ask(self, call_id: str) -> None:
        """Ask a person, and suspend until they have answered."""
        if self._had(TOOL_END, call_id) is not None:
            return
        decision = dict(self.call.resolutions).get(call_id)
        if decision is not None:
            self._end_call(call_id, json.loads(decision)["outcome"])
            return
        if self._had(TOOL_START, call_id) is None:
            self._start_call(call_id, "client_safe", executor="client")
        raise Suspend("input_required", [call_id])

    # --- what happens to it ---------------------------------------------------------------------------

    def acknowledge(self, index: int) -> None:
        self._acked = max(self._acked, index)
        self._look_at_gates()

    def cancel(self) -> None:
        self.cancelled = True
        self._close_gate()

    def seal(self) -> None:
        """Say nothing more."""
        self._sealed = True
        self._gate_closed = True

    def suspend(self, suspension: Suspend) -> None:
        self._emit(
            SUSPENDED, {"reason": suspension.reason, "pending_call_ids": suspension.call_ids}
        )

    def finish(self) -> None:
        outcome = "cancelled" if self.cancelled else "completed"
        self._emit(DONE, {"outcome": outcome}, subject=self.turn_id)

    # --- tools ----------------------------------------------------------------------------------------

    async def _tool(self, call_id: str, seconds: float, safety: str) -> str:
        end = self._had(TOOL_END, call_id)
        if end is not None:
            return str(json.loads(end.data)["outcome"])
        if self._had(TOOL_START, call_id) is not None:
            return await self._resume(call_id, seconds, safety)
        if self._stopped():
            return "not_executed"
        index = self._start_call(call_id, safety, executor="runtime")
        if self._suspends or not await self._passed(index):
            return self._end_call(call_id, "not_executed") if self._stopped() else PENDING
        return await self._body(call_id, seconds, safety)

    def _stopped(self) -> bool:
        # Asked anew after every wait.
        return self.cancelled

    async def _resume(self, call_id: str, seconds: float, safety: str) -> str:
        decision = json.loads(dict(self.call.resolutions).get(call_id, "{}"))
        if self.cancelled and not decision.get("execute"):
            return self._end_call(call_id, "unknown")
        if decision.get("execute") or safety != "unsafe":
            return await self._body(call_id, seconds, safety)
        return self._end_call(call_id, "unknown")

    async def _body(self, call_id: str, seconds: float, safety: str) -> str:
        self._on_run(self, call_id, safety)
        await asyncio.sleep(seconds)
        return self._end_call(call_id, "succeeded")

    async def _passed(self, index: int) -> bool:
        """Wait for the acknowledgement, the hold time-out or a cancel."""
        loop = asyncio.get_running_loop()
        gate = self._gates[index] = loop.create_future()
        timer = loop.call_later(HOLD_SECONDS, self._close_gate)
        self._look_at_gates()
        await gate
        timer.cancel()
        return self._acked >= index and not self._gate_closed

    def _look_at_gates(self) -> None:
        for index, gate in self._gates.items():
            if not gate.done() and (self._gate_closed or self._acked >= index):
                gate.set_result(None)

    def _close_gate(self) -> None:
        self._gate_closed = True
        self._look_at_gates()

    def _start_call(self, call_id: str, safety: str, *, executor: str) -> int:
        gated = executor == "runtime"
        # The ledger of the history checker holds the tools that must not be repeated, by this name.
        name = "append_note" if safety == "unsafe" else "look"
        body = {"call_id": call_id, "name": name, "arguments_json": "{}", "replay_safety": safety}
        rest = {"executor": executor, "checkpoint_required": gated}
        private = compact_json({"idempotency_key": key_of(self.turn_id, call_id)})
        held = gated and not self._suspends
        return self._emit(TOOL_START, body | rest, subject=call_id, gated=held, private=private)

    def _end_call(self, call_id: str, outcome: str) -> str:
        self._emit(TOOL_END, {"call_id": call_id, "outcome": outcome}, subject=call_id)
        return outcome

    # --- events ---------------------------------------------------------------------------------------

    def _had(self, kind: str, subject: str) -> Event | None:
        return next((e for e in self._mine if e.type == kind and e.subject == subject), None)

    def _emit(
        self,
        kind: str,
        body: dict[str, object],
        *,
        subject: str = "",
        gated: bool = False,
        private: str = "",
    ) -> int:
        if self._sealed:
            return 0
        self._index += 1
        data = compact_json({"turn_id": self.turn_id, **body})
        structural = kind != TOKEN
        draft = Draft(kind, data, subject, structural, private, self._index, gated)
        if not self._pack:
            asyncio.get_running_loop().call_soon(self._flush)
        self._pack.append(draft)
        return self._index

    def _flush(self) -> None:
        """What is ready together travels together (P-RUN-9)."""
        pack, self._pack = self._pack, []
        if pack and not self._sealed:
            self._send(pack)

    def flush(self) -> None:
        """Send what waits, so that the end of the stream comes behind it."""
        self._flush()


Script = Callable[[Attempt], Coroutine[Any, Any, None]]


def key_of(turn_id: str, call_id: str) -> str:
    """Return a call's idempotency key: the same in every attempt."""
    return f"{turn_id}/{call_id}"


def _turn_of(event: Event) -> str:
    return str(json.loads(event.data)["turn_id"])
