"""One attempt of one turn: runs the agent and sees to it that the stream ends in one of four ways.

TurnFinished, TurnSuspended, or, when the attempt is abandoned (superseded, its reader gone, its
process going away), no last word at all, which the edge reads as a crash. Knows nothing of protobuf
or gRPC.

Invariants:
- The decision to end is one step: no body starts after it, and only its own last word follows.
- Before TurnFinished every message is settled and every started call finished.
- TurnSuspended is said only while no tool body runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from agent_runtime.agent import Agent
from agent_runtime.calls import Calls
from agent_runtime.context import TurnContext
from agent_runtime.errors import TokenLimitReached, TurnFailed, fit_problem
from agent_runtime.events import (
    CheckpointMode,
    Problem,
    TurnFinished,
    TurnLimit,
    TurnOutcome,
    TurnRef,
    TurnStarted,
    TurnSuspended,
)
from agent_runtime.gate import Gate
from agent_runtime.ledger import Ledger
from agent_runtime.messages import Messages
from agent_runtime.outbox import Emitter, Outbox

logger = logging.getLogger(__name__)

SETTLE_STEPS = 6
"""Loop turns without a change after which every branch that can run has run to its gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """How to run a turn."""

    mode: CheckpointMode
    hold_seconds: float
    heartbeat_seconds: float
    max_model_calls: int
    grace_seconds: float
    """How long an agent and its tools may take to stop, unless a cancel says otherwise."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """Why the turn ends, and how long what still runs may take."""

    finish: TurnFinished
    grace_seconds: float


class Attempt:
    """Runs one attempt. ``outbox`` is what its stream reads."""

    def __init__(
        self,
        turn: TurnRef,
        agent: Agent,
        ledger: Ledger,
        options: TurnOptions,
        *,
        instance_id: str,
        wall_clock: Callable[[], float],
    ) -> None:
        self.turn = turn
        self.outbox = Outbox()
        self.options = options
        self._agent = agent
        self._ledger = ledger
        self._instance_id = instance_id
        self._emitter = Emitter(turn, self.outbox, author=agent.name, wall_clock=wall_clock)
        self._gate = Gate(options.hold_seconds)
        self._messages = Messages(self._emitter, ledger.turn.messages, ledger.usage)
        self._calls = Calls(
            turn,
            self._emitter,
            self._gate,
            ledger,
            tools=agent.tools,
            mode=options.mode,
            changed=self._changed,
            broken=self._broken,
        )
        self._changes = 0
        self._draining = False
        self._ending: asyncio.Future[_Ending | None] = asyncio.get_running_loop().create_future()
        """Resolved by the first decision to end; ``None`` for a suspension."""
        self._agent_task: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self.heartbeat = self._emitter.heartbeat

    @property
    def complete(self) -> bool:
        """Whether the attempt said its last word, rather than being abandoned."""
        return self._emitter.complete

    @property
    def running_call_ids(self) -> tuple[str, ...]:
        """The tool calls whose bodies run now."""
        return self._calls.running_ids

    def start(self, ended: Callable[[], None]) -> None:
        """Begin to run. ``ended`` is called at the end of the attempt.

        What ignores its cancellation for longer than the grace is left behind and may still run.
        """
        self._emitter.emit(TurnStarted(instance_id=self._instance_id))
        for finished in self._ledger.unsettled:
            self._emitter.emit(finished)
        name = f"turn {self.turn.turn_id} attempt {self.turn.attempt}"
        self._task = asyncio.create_task(self._run(), name=name)
        self._task.add_done_callback(lambda _: ended())

    def acknowledge(self, committed_index: int) -> list[str]:
        """Note that every event up to an index is durable; return the calls this releases."""
        return [] if self._ending.done() else self._gate.acknowledge(committed_index)

    def cancel(self, reason: str, grace_seconds: float | None) -> None:
        """Stop the turn for its user. Idempotent; without effect once the attempt is ending."""
        grace = self.options.grace_seconds if grace_seconds is None else grace_seconds
        problem = fit_problem(Problem(reason="CANCELLED", message=reason))
        self._end(TurnFinished(outcome=TurnOutcome.CANCELLED, problem=problem), grace)

    def drain(self) -> None:
        """Suspend the attempt as soon as no tool body runs. It may be continued elsewhere."""
        self._draining = True
        self._calls.hold_back()
        self._changed()

    def abandon(self) -> None:
        """Stop at once and without a last word. Whatever ran is in doubt for the next attempt."""
        self._emitter.sealed = True
        self.outbox.close()
        self._calls.stop_all()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._drive()
        finally:
            self._emitter.sealed = True
            self.outbox.close()
            await self._reap()

    async def _drive(self) -> None:
        context = TurnContext(
            self.turn,
            self._ledger,
            emitter=self._emitter,
            messages=self._messages,
            calls=self._calls,
            tools=self._agent.tools,
            max_model_calls=self.options.max_model_calls,
            limit_reached=self._limit_reached,
        )
        agent_task = asyncio.create_task(
            self._call_agent(context), name=f"agent {self._agent.name}"
        )
        self._agent_task = agent_task
        either: set[asyncio.Future[Any]] = {agent_task, self._ending}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._ending.done():
            self._end(self._judge(agent_task), self.options.grace_seconds)
        ending = self._ending.result()
        if ending is not None:
            await self._wind_down(ending)

    async def _call_agent(self, context: TurnContext) -> None:
        await self._agent.run(context)

    def _judge(self, agent_task: asyncio.Task[None]) -> TurnFinished:
        """Say how the turn ended from how its agent did."""
        error = None if agent_task.cancelled() else agent_task.exception()
        if isinstance(error, TurnFailed):
            return _failed(error.problem)
        if isinstance(error, TokenLimitReached):
            return _limited(TurnLimit.TOKENS, "the model's answer met its upper size")
        if error is None and not agent_task.cancelled():
            return TurnFinished(outcome=TurnOutcome.COMPLETED)
        kind = type(error).__name__ if error is not None else "CancelledError"
        # Its text may quote a prompt or an argument: how much of it is written is the log's decision.
        logger.warning("agent failed: turn %s", self.turn.turn_id, exc_info=error)
        return _failed(Problem(reason="AGENT_ERROR", message=kind))

    async def _wind_down(self, ending: _Ending) -> None:
        """Stop what still runs, tell every end, say the last word."""
        await self._stop_tasks(ending.grace_seconds)
        self._messages.settle_all()
        self._calls.finish_all()
        finish = replace(
            ending.finish, final_message_id=self._messages.final_id, usage=self._messages.usage
        )
        self._emitter.seal(finish)

    async def _reap(self) -> None:
        """Stop what still runs, as after an abandonment, and wait for it within the grace."""
        self._calls.stop_all()
        await self._stop_tasks(self.options.grace_seconds)

    async def _stop_tasks(self, grace_seconds: float) -> None:
        tasks: set[asyncio.Task[Any]] = {*self._calls.tasks}
        if self._agent_task is not None:
            self._agent_task.cancel()
            tasks.add(self._agent_task)
        if not tasks:
            return
        for task in tasks:
            task.add_done_callback(_disregard)
        await asyncio.wait(tasks, timeout=grace_seconds)

    def _end(self, finish: TurnFinished, grace_seconds: float) -> None:
        if self._ending.done():
            return
        self._calls.stop_all()
        self._ending.set_result(_Ending(finish, grace_seconds))

    def _suspend(self, suspended: TurnSuspended) -> None:
        self._emitter.seal(suspended)
        self._calls.stop_all()
        self._ending.set_result(None)

    def _broken(self) -> None:
        problem = Problem(
            reason="NONDETERMINISTIC_AGENT", message="a call differs from the journal"
        )
        self._end(_failed(problem), self.options.grace_seconds)

    def _limit_reached(self) -> None:
        finish = _limited(TurnLimit.MODEL_CALLS, f"{self.options.max_model_calls} calls")
        self._end(finish, self.options.grace_seconds)

    def _changed(self) -> None:
        """A call moved. Once all is still, see whether anything can go on here."""
        self._changes += 1
        if self._ending.done():
            return
        if self._draining and not self._calls.running_ids:
            self._suspend(self._calls.drain_suspension())
            return
        loop = asyncio.get_running_loop()
        loop.call_soon(self._settle, SETTLE_STEPS, self._changes)

    def _settle(self, steps_left: int, change: int) -> None:
        if self._ending.done() or change != self._changes:
            return
        if steps_left:
            asyncio.get_running_loop().call_soon(self._settle, steps_left - 1, change)
            return
        suspended = self._calls.suspension()
        if suspended is not None:
            self._suspend(suspended)


def _disregard(task: asyncio.Task[Any]) -> None:
    """Look at how a stopped task ended, whenever that is, or asyncio would print it with its text."""
    if not task.cancelled():
        task.exception()


def _failed(problem: Problem) -> TurnFinished:
    return TurnFinished(outcome=TurnOutcome.FAILED, problem=problem)


def _limited(limit: TurnLimit, message: str) -> TurnFinished:
    problem = Problem(reason=f"LIMIT_{limit.upper()}", message=message)
    return TurnFinished(outcome=TurnOutcome.LIMIT_REACHED, problem=problem, limit=limit)
