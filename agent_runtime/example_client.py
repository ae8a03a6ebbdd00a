"""An internal service that runs a turn over gRPC without the edge: an example to read and to run.

    python -m agent_runtime.example_client "count to 5"

It does by hand what the contract asks of a caller, and no more:

1. keep the structural events, in order, before acting on them: they are the turn's journal
   (here a list; a service that may crash itself keeps them in a database);
2. acknowledge a checkpoint only once its ToolCallStarted is kept;
3. take a stream without a last word for a crash, whatever its status, and resume from the journal
   with the next attempt number;
4. answer what a person is asked for, and refuse what it cannot do: it has no tools of its own.

Replies to questions are read from the terminal. The target is the first of ``--target`` and
``127.0.0.1:50051``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from unbroken.v1 import agent_runtime_pb2 as pb
from unbroken.v1 import agent_runtime_pb2_grpc as rpc

MAX_ATTEMPTS_WITHOUT_PROGRESS = 5
RETRY_SECONDS = 0.5

Answer = Callable[[str], str]
"""Asks a person and returns what they say."""


@dataclass(slots=True)
class Journal:
    """What is known for certain about one turn."""

    session_id: str
    turn_id: str
    agent: str
    input: str
    attempt: int = 0
    events: list[pb.AgentEvent] = field(default_factory=list)
    """Structural events, oldest first. Being in here is what "durable" means to this client."""

    def begin_attempt(self) -> pb.TurnRef:
        """Note the next attempt before it is asked for: its number fences the one before it."""
        self.attempt += 1
        parts = [pb.ContentPart(text=self.input)] if self.attempt == 1 else []
        started = pb.TurnStarted(input=parts)
        self.events.append(pb.AgentEvent(attempt=self.attempt, turn_started=started))
        return self.turn()

    def turn(self) -> pb.TurnRef:
        return pb.TurnRef(session_id=self.session_id, turn_id=self.turn_id, attempt=self.attempt)

    def keep(self, event: pb.AgentEvent) -> bool:
        """Keep an event if it must be kept; say whether it was."""
        structural = event.delivery_class != pb.DELIVERY_CLASS_COALESCABLE
        if not structural or event.HasField("heartbeat") or event.HasField("turn_started"):
            return False
        self.events.append(event)
        return True


async def run_turn(
    stub: rpc.AgentRuntimeServiceAsyncStub,
    journal: Journal,
    *,
    show: Callable[[pb.AgentEvent], None],
    answer: Answer,
) -> pb.TurnFinished:
    """Run a turn to its end, over as many attempts as it takes.

    Raises:
        ConnectionError: attempt after attempt ended without a single event to keep.
    """
    resolutions: list[pb.ToolCallResolution] = []
    idle_attempts = 0
    while True:
        known = len(journal.events)
        last = await _run_attempt(stub, journal, resolutions, show)
        if last is not None and last.HasField("turn_finished"):
            return last.turn_finished
        idle_attempts = 0 if len(journal.events) > known + 1 else idle_attempts + 1
        if idle_attempts == MAX_ATTEMPTS_WITHOUT_PROGRESS:
            raise ConnectionError("no runtime answers there; start one, or name it with --target")
        if last is None:
            # A crash: nobody knows what ran, so nothing is decided for the runtime.
            resolutions = []
            await asyncio.sleep(RETRY_SECONDS)
        else:
            resolutions = resolve(last.turn_suspended, answer)


def resolve(suspended: pb.TurnSuspended, answer: Answer) -> list[pb.ToolCallResolution]:
    """Decide about the calls that a suspended attempt left: run, ask the person, or refuse."""
    pending = suspended.pending_tool_call_ids
    if suspended.reason in (pb.SUSPEND_REASON_CHECKPOINT, pb.SUSPEND_REASON_DRAINING):
        return [pb.ToolCallResolution(tool_call_id=call_id, execute=True) for call_id in pending]
    if suspended.reason != pb.SUSPEND_REASON_INPUT_REQUIRED:
        # A tool that its client runs, or a reason from the future. Executing it would suspend again.
        return [_refused(call_id, "CLIENT_TOOLS_UNSUPPORTED") for call_id in pending]
    call_id, reply = pending[0], answer(suspended.prompt)
    if not suspended.prompt.startswith("Allow"):
        return [_answered(call_id, reply)]
    if reply.strip().lower() in ("y", "yes"):
        return [pb.ToolCallResolution(tool_call_id=call_id, execute=True)]
    return [_refused(call_id, "DENIED")]


async def _run_attempt(
    stub: rpc.AgentRuntimeServiceAsyncStub,
    journal: Journal,
    resolutions: Sequence[pb.ToolCallResolution],
    show: Callable[[pb.AgentEvent], None],
) -> pb.AgentEvent | None:
    """Run one attempt; return its last word, or ``None`` if it had none."""
    turn = journal.begin_attempt()
    call = _call(stub, journal, turn, resolutions)
    try:
        async for event in _events(call):
            kept = journal.keep(event)
            show(event)
            if event.HasField("turn_finished") or event.HasField("turn_suspended"):
                return event
            must_acknowledge = kept and event.tool_call_started.checkpoint_required
            if must_acknowledge and not await _acknowledge(stub, turn, event.index):
                return None
    except grpc.aio.AioRpcError as error:
        if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND):
            raise  # the same request would be refused again
    finally:
        call.cancel()  # without effect on a stream that has ended
    return None


async def _acknowledge(
    stub: rpc.AgentRuntimeServiceAsyncStub, turn: pb.TurnRef, committed_index: int
) -> bool:
    """Say what is kept. ``False``: the attempt is not held there any more, or cannot be reached."""
    request = pb.AckCheckpointRequest(turn=turn, committed_index=committed_index)
    try:
        await stub.AckCheckpoint(request)
    except grpc.aio.AioRpcError:
        return False
    return True


def _call(
    stub: rpc.AgentRuntimeServiceAsyncStub,
    journal: Journal,
    turn: pb.TurnRef,
    resolutions: Sequence[pb.ToolCallResolution],
) -> Any:
    if turn.attempt == 1:
        parts = [pb.ContentPart(text=journal.input)]
        return stub.RunTurn(pb.RunTurnRequest(turn=turn, agent=journal.agent, input=parts))
    request = pb.ResumeTurnRequest(
        turn=turn, agent=journal.agent, history=journal.events, resolutions=resolutions
    )
    return stub.ResumeTurn(request)


async def _events(call: Any) -> AsyncIterator[pb.AgentEvent]:
    async for response in call:
        for event in response.events:
            yield event


def _answered(call_id: str, reply: str) -> pb.ToolCallResolution:
    finished = pb.ToolCallFinished(
        tool_call_id=call_id, outcome=pb.TOOL_OUTCOME_SUCCEEDED, result_json=json.dumps(reply)
    )
    return pb.ToolCallResolution(tool_call_id=call_id, finished=finished)


def _refused(call_id: str, reason: str) -> pb.ToolCallResolution:
    finished = pb.ToolCallFinished(
        tool_call_id=call_id,
        outcome=pb.TOOL_OUTCOME_NOT_EXECUTED,
        error=pb.ErrorInfo(reason=reason),
    )
    return pb.ToolCallResolution(tool_call_id=call_id, finished=finished)


def _print_event(event: pb.AgentEvent) -> None:
    if event.HasField("text_delta"):
        print(event.text_delta.text, end="", flush=True)
    elif event.HasField("message_completed"):
        print(flush=True)
    elif event.HasField("tool_call_started"):
        print(f"[tool {event.tool_call_started.tool_name}]", flush=True)


async def _main() -> int:
    parser = argparse.ArgumentParser(description="Run one turn of an agent.")
    parser.add_argument("text")
    parser.add_argument("--agent", default="")
    parser.add_argument("--target", default="127.0.0.1:50051")
    arguments = parser.parse_args()
    journal = Journal(uuid.uuid4().hex, uuid.uuid4().hex, arguments.agent, arguments.text)
    async with grpc.aio.insecure_channel(arguments.target) as channel:
        stub = rpc.AgentRuntimeServiceStub(channel)
        try:
            finished = await run_turn(
                stub, journal, show=_print_event, answer=lambda prompt: input(f"{prompt} ")
            )
        except (ConnectionError, grpc.aio.AioRpcError) as error:
            print(f"example_client: {_reason(error)}", file=sys.stderr)
            return 1
    if finished.outcome != pb.TURN_OUTCOME_COMPLETED:
        print(f"{pb.TurnOutcome.Name(finished.outcome)} {finished.error.reason}", file=sys.stderr)
        return 1
    return 0


def _reason(error: Exception) -> str:
    return error.details() or "" if isinstance(error, grpc.aio.AioRpcError) else str(error)


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
