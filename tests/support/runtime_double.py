"""A runtime in the test's own process, behind ``edge.ports.Runtime``: agents are small async functions.

Deliberately absent: gRPC. It exists to inject what a real runtime cannot be made to do on demand, and to
run under virtual time. Its gate, replay and outcomes follow PROTOCOL.md; ``ledger`` is what tools really did.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from edge.core.event import (
    DONE,
    ERROR,
    MESSAGE,
    SUSPENDED,
    TOKEN,
    TOOL_END,
    TOOL_START,
    Draft,
    compact_json,
)
from edge.ports import AttemptCall, AttemptRef, RuntimeEnded, RuntimeInfo
from tests.support.virtual_loop import elapse

Agent = Callable[["Attempt"], Awaitable[None]]
HOLD_SECONDS = 10.0


class Suspend(Exception):
    """Ends the attempt with a ``suspended`` event."""

    def __init__(self, reason: str, call_ids: Sequence[str]) -> None:
        self.reason = reason
        self.call_ids = list(call_ids)


class Attempt:
    """One attempt, as its agent sees it."""

    def __init__(self, runtime: RuntimeDouble, call: AttemptCall) -> None:
        self.runtime = runtime
        self.call = call
        self.cancelled = asyncio.Event()
        # Message and call ids are unique within a turn only.
        self.so_far = [e for e in call.history if f'"turn_id":"{call.ref.turn_id}"' in e.data]
        self._out: asyncio.Queue[list[Draft] | RuntimeEnded | None] = asyncio.Queue()
        self._index = 0
        self._acked = 0
        self._ack = asyncio.Event()
        self._open: set[str] = set()

    @property
    def turn_id(self) -> str:
        return self.call.ref.turn_id

    def emit(
        self, kind: str, body: dict[str, object], *, subject: str = "", gated: bool = False
    ) -> int:
        """Send one event; return its index."""
        self._index += 1
        data = compact_json({"turn_id": self.turn_id, **body})
        structural = kind not in (TOKEN,)
        draft = Draft(kind, data, subject, structural, index=self._index, gated=gated)
        self._out.put_nowait([draft])
        return self._index

    def text(self, message_id: str, text: str) -> None:
        self.emit(TOKEN, {"message_id": message_id, "text": text}, subject=message_id)

    def message(self, message_id: str, text: str, status: str = "complete") -> None:
        parts = [{"type": "text", "text": text}]
        body: dict[str, object] = {"message_id": message_id, "role": "agent"}
        self.emit(MESSAGE, body | {"parts": parts, "status": status}, subject=message_id)

    async def say(self, message_id: str, words: Sequence[str], every_seconds: float = 0.05) -> None:
        """Stream a message word by word, unless an earlier attempt settled it."""
        if any(e.type == MESSAGE and e.subject == message_id for e in self.so_far):
            return
        for word in words:
            self.text(message_id, word)
            await elapse(every_seconds)
        self.message(message_id, "".join(words))

    async def tool(self, call_id: str, seconds: float = 0.0, *, safety: str = "unsafe") -> str:
        """Run a tool through the gate; return its outcome."""
        ended = [e for e in self.so_far if e.type == TOOL_END and e.subject == call_id]
        if ended:
            return str(json.loads(ended[-1].data)["outcome"])
        started = any(e.type == TOOL_START and e.subject == call_id for e in self.so_far)
        if started:
            return await self._resume_tool(call_id, seconds, safety)
        body = {"call_id": call_id, "name": "tool", "arguments_json": "{}", "replay_safety": safety}
        rest = {"executor": "runtime", "checkpoint_required": True}
        index = self.emit(TOOL_START, body | rest, subject=call_id, gated=True)
        if not await self._released(index):
            if self.cancelled.is_set():
                return self._end(call_id, "not_executed")
            raise Suspend("checkpoint", [call_id])
        return await self._run(call_id, seconds)

    async def _resume_tool(self, call_id: str, seconds: float, safety: str) -> str:
        decisions = dict(self.call.resolutions)
        decision = json.loads(decisions.get(call_id, "{}"))
        if "outcome" in decision:
            return self._end(call_id, decision["outcome"])
        if decision.get("execute") or safety != "unsafe":
            return await self._run(call_id, seconds)
        return self._end(call_id, "unknown")

    async def _released(self, index: int) -> bool:
        """Wait for the checkpoint, the hold time-out or a cancel."""
        try:
            async with asyncio.timeout(HOLD_SECONDS):
                while self._acked < index and not self.cancelled.is_set():
                    self._ack.clear()
                    await self._ack.wait()
        except TimeoutError:
            return False
        return self._acked >= index

    async def _run(self, call_id: str, seconds: float) -> str:
        self.runtime.ledger.append(call_id)
        await elapse(seconds)
        return self._end(call_id, "succeeded")

    def _end(self, call_id: str, outcome: str) -> str:
        self.emit(TOOL_END, {"call_id": call_id, "outcome": outcome}, subject=call_id)
        return outcome

    def ask(self, call_id: str) -> str:
        """Ask a person; return the outcome once it is there."""
        decisions = dict(self.call.resolutions)
        if call_id in decisions:
            return self._end(call_id, json.loads(decisions[call_id])["outcome"])
        body = {
            "call_id": call_id,
            "name": "ask",
            "arguments_json": "{}",
            "replay_safety": "unsafe",
        }
        rest = {"executor": "client", "checkpoint_required": False}
        self.emit(TOOL_START, body | rest, subject=call_id)
        raise Suspend("input_required", [call_id])

    def acknowledge(self, index: int) -> None:
        self._acked = max(self._acked, index)
        self._ack.set()

    def stop(self) -> None:
        self.cancelled.set()
        self._ack.set()

    def end(self, failure: RuntimeEnded | None = None) -> None:
        """Close the stream, with a failure or with status OK."""
        self._out.put_nowait(failure)

    async def batches(self) -> AsyncIterator[Sequence[Draft]]:
        while (item := await self._out.get()) is not None:
            if isinstance(item, RuntimeEnded):
                raise item
            yield item


class Stream:
    """The edge's end of an attempt."""

    def __init__(self, attempt: Attempt, agent: Agent) -> None:
        self._attempt = attempt
        self._task = asyncio.get_running_loop().create_task(self._run(agent))

    async def _run(self, agent: Agent) -> None:
        attempt = self._attempt
        try:
            await agent(attempt)
            outcome = "cancelled" if attempt.cancelled.is_set() else "completed"
            attempt.emit(DONE, {"outcome": outcome}, subject=attempt.turn_id)
            attempt.end()
        except Suspend as suspend:
            body: dict[str, object] = {"reason": suspend.reason}
            body["pending_call_ids"] = suspend.call_ids
            attempt.emit(SUSPENDED, body)
            attempt.end()
        except RuntimeEnded as ended:
            attempt.end(ended)

    def __aiter__(self) -> AsyncIterator[Sequence[Draft]]:
        return self._attempt.batches()

    def cancel(self) -> None:
        self._attempt.runtime.forget(self._attempt)
        self._task.cancel()
        self._attempt.end()


class RuntimeDouble:
    """A ``Runtime`` whose turns all run ``agent``."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.ledger: list[str] = []
        self.calls: list[AttemptCall] = []
        self.acks: list[tuple[AttemptRef, int]] = []
        self.here = True
        """Whether acks and cancels reach the attempts; otherwise they miss, as behind a balancer."""
        self._attempts: dict[AttemptRef, Attempt] = {}

    async def info(self) -> RuntimeInfo:
        return RuntimeInfo(["agent"], resume_supported=True)

    def start(self, call: AttemptCall) -> Stream:
        attempt = Attempt(self, call)
        self.calls.append(call)
        self._attempts[call.ref] = attempt
        return Stream(attempt, self.agent)

    async def ack(self, ref: AttemptRef, committed_index: int) -> bool:
        self.acks.append((ref, committed_index))
        attempt = self._attempts.get(ref) if self.here else None
        if attempt is not None:
            attempt.acknowledge(committed_index)
        return attempt is not None

    async def cancel(self, ref: AttemptRef, reason: str, grace_seconds: float) -> bool:
        attempt = self._attempts.get(ref) if self.here else None
        if attempt is not None:
            attempt.stop()
        return attempt is not None

    def forget(self, attempt: Attempt) -> None:
        self._attempts.pop(attempt.call.ref, None)

    async def close(self) -> None:
        for attempt in list(self._attempts.values()):
            attempt.end()


def crash(reason: str = "runtime_unavailable", *, retryable: bool = True) -> RuntimeEnded:
    """Return the failure of a runtime that went away."""
    return RuntimeEnded(reason, retryable=retryable)


__all__ = ["ERROR", "Agent", "Attempt", "RuntimeDouble", "Suspend", "crash"]
