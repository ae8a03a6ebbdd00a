"""The tool calls of one attempt: recorded, refused, held at the gate, run, and always finished.

Knows nothing of the agent's code, of streams or of the wire.

Invariants:
- Ids are given in the order of the calls, before anything is awaited, so a replay gives them again.
- A body starts only after its admission; a call that was stopped before that is NOT_EXECUTED.
- Whoever waits for a call does not own it: an agent that gives up waiting stops the call, and its
  end is told all the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime.errors import NondeterministicAgent, failure_for
from agent_runtime.events import (
    CheckpointMode,
    Executor,
    Outcome,
    Problem,
    Safety,
    SuspendReason,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TurnRef,
    TurnSuspended,
)
from agent_runtime.execution import run_tool
from agent_runtime.gate import Admission, Gate, decide_admission
from agent_runtime.ledger import ASK_TOOL, Ledger, RecordedCall, Standing
from agent_runtime.limits import (
    MAX_NOTE_CHARACTERS,
    arguments_fit,
    clean_text,
    to_json,
    truncation_marker,
)
from agent_runtime.outbox import Emitter
from agent_runtime.schema import find_mismatch
from agent_runtime.tools import Tool, ToolContext, tool

STOPPED = Problem(reason="CANCELLED", message="the turn stopped before the call was done")


@tool(executor="client", name=ASK_TOOL)
def ask_tool(prompt: str, schema: object = None) -> None:
    """Ask a person. The result is the answer."""


@dataclass(slots=True, eq=False)
class Call:
    """One call that the agent is waiting for."""

    call_id: str
    name: str
    arguments_json: str
    message_id: str
    tool: Tool | None
    refusal: Problem | None
    recorded: RecordedCall | None
    task: asyncio.Task[ToolCallFinished] | None = None
    started: bool = False
    """Whether its ToolCallStarted is in the journal or on its way there."""
    running: bool = False
    blocked: SuspendReason | None = None
    """What it waits for, if this attempt cannot bring it on."""
    finished: ToolCallFinished | None = None


class Calls:
    """Starts and ends the calls of one attempt."""

    def __init__(
        self,
        turn: TurnRef,
        emitter: Emitter,
        gate: Gate,
        ledger: Ledger,
        *,
        tools: Mapping[str, Tool],
        mode: CheckpointMode,
        changed: Callable[[], None],
        broken: Callable[[], None],
    ) -> None:
        """``changed`` hears of every call that blocks or moves, ``broken`` of a replay that differs."""
        self._turn = turn
        self._emitter = emitter
        self._gate = gate
        self._ledger = ledger
        self._tools = {**tools, ASK_TOOL: ask_tool}
        self._mode = mode
        self._changed = changed
        self._broken = broken
        self._count = 0
        self._active: dict[str, Call] = {}
        self._reached: set[str] = set()
        self._held_back = False
        self._stopping = False

    @property
    def running_ids(self) -> tuple[str, ...]:
        """The calls whose bodies run now."""
        return tuple(call.call_id for call in self._active.values() if call.running)

    @property
    def tasks(self) -> set[asyncio.Task[ToolCallFinished]]:
        """The tasks that carry the calls."""
        return {call.task for call in self._active.values() if call.task is not None}

    def call(
        self, name: str, arguments: Mapping[str, object], message_id: str
    ) -> Coroutine[Any, Any, Any]:
        """Number a call now; the coroutine returned starts it and waits for its result.

        Raises:
            TypeError, ValueError: the arguments have no JSON form.
        """
        self._count += 1
        call_id = f"c{self._count}"
        name = clean_text(name)[:MAX_NOTE_CHARACTERS]  # a model may imagine any
        arguments_json = to_json(arguments)
        fits = arguments_fit(arguments_json)
        found = self._tools.get(name)
        call = Call(
            call_id=call_id,
            name=name,
            arguments_json=arguments_json if fits else truncation_marker(arguments_json),
            message_id=message_id,
            tool=found,
            refusal=decide_refusal(found, arguments_json),
            recorded=self._ledger.calls.get(call_id),
        )
        return self._result(call)

    def stop_all(self) -> None:
        """Let no further body start, and stop those that run as far as they can be stopped."""
        self._stopping = True
        for task in self.tasks:
            task.cancel()

    def hold_back(self) -> None:
        """Let no further body start; those that run may end."""
        self._held_back = True
        self._gate.close()

    def finish_all(self) -> None:
        """Give an end to every started call that has none yet. The turn is about to finish."""
        for call in list(self._active.values()):
            self._finish(call, _stopped(call))
        for call_id, recorded in self._ledger.calls.items():
            if call_id not in self._reached and recorded.finished is None:
                self._emitter.emit(_unreached(call_id, recorded))

    def suspension(self) -> TurnSuspended | None:
        """Say how the attempt must suspend itself, if none of its calls can go on here.

        Checkpoints come first and alone: what an edge may release without a person must never
        share a list with what it may not.
        """
        calls = list(self._active.values())
        if not calls or any(call.blocked is None for call in calls):
            return None
        for reason in (
            SuspendReason.CHECKPOINT,
            SuspendReason.INPUT_REQUIRED,
            SuspendReason.CLIENT_TOOL,
        ):
            chosen = [call for call in calls if call.blocked is reason]
            if chosen:
                return _suspended(reason, chosen)
        raise AssertionError("a blocked call waits for nothing")

    def drain_suspension(self) -> TurnSuspended:
        """Say how the attempt suspends itself now, while no body runs."""
        at_gate = [
            call
            for call in self._active.values()
            if call.started and call.blocked in (None, SuspendReason.CHECKPOINT)
        ]
        return TurnSuspended(
            reason=SuspendReason.DRAINING, pending=tuple(call.call_id for call in at_gate)
        )

    async def _result(self, call: Call) -> object:
        if self._stopping:
            raise asyncio.CancelledError
        if call.recorded is not None:
            self._check_same(call, call.recorded.started)
            self._reached.add(call.call_id)
            if call.recorded.finished is not None:
                return _value(call.name, call.recorded.finished)
        call.task = asyncio.create_task(self._carry_out(call), name=f"call {call.call_id}")
        self._active[call.call_id] = call
        call.task.add_done_callback(lambda _: self._forget(call))
        self._changed()
        try:
            # Shielded: the attempt decides how a call ends, also when the agent stops waiting.
            finished = await asyncio.shield(call.task)
        except asyncio.CancelledError:
            call.task.cancel()
            raise
        if self._stopping:
            raise asyncio.CancelledError
        return _value(call.name, finished)

    def _check_same(self, call: Call, recorded: ToolCallStarted) -> None:
        same_arguments = json.loads(recorded.arguments_json) == json.loads(call.arguments_json)
        if recorded.tool != call.name or not same_arguments:
            self._broken()
            raise NondeterministicAgent(f"call {call.call_id} differs from the recorded one")

    async def _carry_out(self, call: Call) -> ToolCallFinished:
        try:
            await self._emitter.room()
            index = self._start(call)
            finished = await self._admit_and_run(call, index)
        except asyncio.CancelledError:
            finished = _stopped(call)
        self._finish(call, finished)
        return finished

    def _start(self, call: Call) -> int:
        """Emit the call's ToolCallStarted unless the journal has it; return its index."""
        call.started = True
        if call.recorded is not None:
            return 0
        gated = call.tool is not None and call.refusal is None
        approval = call.tool is not None and call.tool.approval
        safety = call.tool.safety if call.tool is not None else Safety.UNSAFE
        return self._emitter.emit(
            ToolCallStarted(
                call_id=call.call_id,
                tool=call.name,
                arguments_json=call.arguments_json,
                # What a person allowed once is never repeated without asking again.
                safety=Safety.UNSAFE if approval else safety,
                executor=call.tool.executor if call.tool is not None else Executor.RUNTIME,
                idempotency_key=self._context(call).idempotency_key,
                message_id=call.message_id,
                checkpoint_required=gated and self._admission(call) in _AT_CHECKPOINT,
            )
        )

    async def _admit_and_run(self, call: Call, index: int) -> ToolCallFinished:
        if call.refusal is not None or call.tool is None:
            return ToolCallFinished(
                call_id=call.call_id, outcome=Outcome.NOT_EXECUTED, problem=call.refusal
            )
        call.blocked = await self._wait_for_admission(call, index)
        if call.blocked is not None:
            self._changed()
            await asyncio.get_running_loop().create_future()  # until the attempt ends
        call.running = True
        return await run_tool(call.tool, json.loads(call.arguments_json), self._context(call))

    async def _wait_for_admission(self, call: Call, index: int) -> SuspendReason | None:
        """Return when the body may run, or what the call waits for beyond this attempt."""
        admission = self._admission(call)
        if admission in _BEYOND:
            return _BEYOND[admission] if call.name != ASK_TOOL else SuspendReason.INPUT_REQUIRED
        if self._held_back:
            return SuspendReason.CHECKPOINT
        if admission is Admission.AWAIT_ACK and not await self._gate.passed(call.call_id, index):
            return SuspendReason.CHECKPOINT
        return None

    def _admission(self, call: Call) -> Admission:
        if call.tool is None:
            return Admission.RUN
        if call.recorded is not None and call.recorded.standing is Standing.MAY_RUN:
            return Admission.RUN
        return decide_admission(self._mode, call.tool)

    def _finish(self, call: Call, finished: ToolCallFinished) -> None:
        call.running = False
        if call.finished is None and call.started:
            self._emitter.emit(finished)
        call.finished = call.finished or finished
        self._forget(call)

    def _forget(self, call: Call) -> None:
        if self._active.pop(call.call_id, None) is not None:
            self._changed()

    def _context(self, call: Call) -> ToolContext:
        loop = asyncio.get_running_loop()

        def report(message: str, fraction: float | None) -> None:
            # From any thread. What comes after the end of the call says nothing any more.
            loop.call_soon_threadsafe(self._progress, call, message, fraction)

        return ToolContext(self._turn.session_id, self._turn.turn_id, call.call_id, report)

    def _progress(self, call: Call, message: str, fraction: float | None) -> None:
        if call.finished is not None or self._emitter.full:
            return
        self._emitter.emit(
            ToolCallProgress(
                call_id=call.call_id,
                message=clean_text(message)[:MAX_NOTE_CHARACTERS],
                fraction=fraction if fraction is None else min(max(fraction, 0.0), 1.0),
            )
        )


_AT_CHECKPOINT = (Admission.AWAIT_ACK, Admission.AWAIT_RESUME)
_BEYOND = {
    Admission.AWAIT_RESUME: SuspendReason.CHECKPOINT,
    Admission.AWAIT_PERSON: SuspendReason.INPUT_REQUIRED,
    Admission.AWAIT_CLIENT: SuspendReason.CLIENT_TOOL,
}


def decide_refusal(found: Tool | None, arguments_json: str) -> Problem | None:
    """Say why a call must not run, whatever the journal says; ``None`` if it may."""
    if found is None:
        return Problem(reason="UNKNOWN_TOOL", message="the agent declares no tool of this name")
    if not arguments_fit(arguments_json):
        return Problem(reason="TOOL_ARGS_TOO_LARGE", message=f"{len(arguments_json)} characters")
    mismatch = find_mismatch(found.parameters, json.loads(arguments_json))
    return Problem(reason="INVALID_ARGUMENTS", message=mismatch) if mismatch else None


def _value(name: str, finished: ToolCallFinished) -> object:
    """Return a call's result, the same live and in a replay, or raise how it failed."""
    if finished.outcome is Outcome.SUCCEEDED:
        return json.loads(finished.result_json) if finished.result_json else None
    raise failure_for(name, finished.outcome, finished.problem or Problem(reason="UNSPECIFIED"))


def _stopped(call: Call) -> ToolCallFinished:
    if call.running or (call.recorded is not None and _may_have_run(call.recorded)):
        return _ended(call.call_id, Outcome.UNKNOWN)
    return _ended(call.call_id, Outcome.NOT_EXECUTED)


def _unreached(call_id: str, recorded: RecordedCall) -> ToolCallFinished:
    """The end of a call that an earlier attempt started and this one never came to."""
    return _ended(call_id, Outcome.UNKNOWN if _may_have_run(recorded) else Outcome.NOT_EXECUTED)


def _may_have_run(recorded: RecordedCall) -> bool:
    return recorded.standing is Standing.MAY_RUN and not recorded.never_ran


def _ended(call_id: str, outcome: Outcome) -> ToolCallFinished:
    return ToolCallFinished(call_id=call_id, outcome=outcome, problem=STOPPED)


def _suspended(reason: SuspendReason, calls: list[Call]) -> TurnSuspended:
    pending = tuple(call.call_id for call in calls)
    if reason is not SuspendReason.INPUT_REQUIRED:
        return TurnSuspended(reason=reason, pending=pending)
    first = calls[0]
    if first.name != ASK_TOOL:
        prompt = f"Allow the tool {first.name!r} to run?"
        return TurnSuspended(reason=reason, pending=pending, prompt=prompt)
    asked = json.loads(first.arguments_json)
    schema = asked.get("schema")
    return TurnSuspended(
        reason=reason,
        pending=pending,
        prompt=asked.get("prompt", "")[:MAX_NOTE_CHARACTERS],
        response_schema_json="" if schema is None else to_json(schema),
    )
