"""Runs an agent as an edge would, in process: without gRPC, a network or a store.

The attempts are the real ones; only the edge is played. It commits every event in memory, opens the
gate of a call once its start is committed, answers for people, and resumes what was lost or
suspended. Knows nothing of what a test expects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from agent_runtime.agent import as_agent
from agent_runtime.attempt import Attempt, TurnOptions
from agent_runtime.events import CheckpointMode, Event, Part, ToolCallStarted, TurnRef
from agent_runtime.ledger import Ledger
from agent_runtime.testing.answers import Answers
from agent_runtime.testing.bodies import Bodies, Fakes
from agent_runtime.testing.faults import Act, Fault
from agent_runtime.testing.journal import Journal
from agent_runtime.testing.tokens import point
from agent_runtime.testing.transcript import Transcript

HEAD_START_TURNS = 30
"""Turns of the loop that an agent gets before a fault: enough to pass a gate and enter a tool."""


class AgentStuck(AssertionError):
    """The turn did not come to an end in the time that it was given. The text says how far it got."""


class Setting(TypedDict, total=False):
    """What surrounds a turn, as keyword arguments; the defaults are those of ``Scene``."""

    tools: Fakes
    answers: Answers
    history: Sequence[Event]
    mode: CheckpointMode
    max_model_calls: int
    grace_seconds: float
    limit_seconds: float
    wall_clock: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Scene:
    """An agent, its input, and what surrounds the turn: enough to run it again and again."""

    agent: object
    """Whatever ``agent_runtime.agent.as_agent`` takes. A class gives a new agent to every run."""
    input: str | Sequence[Part] = ""
    tools: Fakes = field(default_factory=dict)
    """Functions that stand in for the bodies of the tools with these names."""
    answers: Answers = field(default_factory=dict)
    """What is said to calls that wait for a person or a browser, by call id or by a function."""
    history: Sequence[Event] = ()
    """The journal of the session's earlier turns: ``Transcript.journal`` of the last one."""
    mode: CheckpointMode = CheckpointMode.HOLD
    """SUSPEND ends the attempt at every checkpoint and resumes it, as behind a balancer."""
    max_model_calls: int = 50
    grace_seconds: float = 1.0
    """How long the agent and its tools may take to stop."""
    limit_seconds: float = 10.0
    """How long the whole turn may take."""
    wall_clock: Callable[[], float] = float
    """Gives the Unix seconds that events are stamped with; always 0.0 by default."""

    async def run(self, *faults: Fault) -> Transcript:
        """Run the turn. See ``run_agent``."""
        return await _Edge(self, faults).run()


async def run_agent(
    agent: object, input: str | Sequence[Part] = "", *faults: Fault, **setting: Unpack[Setting]
) -> Transcript:
    """Run a turn of an agent to its end, or until it waits for an answer that nobody gives.

    Args:
        agent: an ``Agent``, or what ``as_agent`` makes one of.
        input: what the user says.
        faults: what happens to the turn: ``crash_after``, ``cancel_after``, ``drain_after``, ``hold``.
        setting: see ``Scene``.

    Raises:
        AgentStuck: the turn took longer than ``limit_seconds``; what ran of it was stopped.
        ValueError: a fake has the name of no tool.
    """
    return await Scene(agent, input, **setting).run(*faults)


class _Edge:
    """Plays the edge's part in one turn."""

    def __init__(self, scene: Scene, faults: Sequence[Fault]) -> None:
        self._scene = scene
        self._faults = faults
        self._bodies = Bodies(scene.tools)
        self._agent = self._bodies.watch(as_agent(scene.agent))
        said = scene.input
        parts = (Part(text=said),) if isinstance(said, str) else tuple(said)
        self._journal = Journal(parts, scene.history)
        self._cancelled = False
        self._struck_at: float | None = None
        self._stop_seconds = 0.0

    async def run(self) -> Transcript:
        """Run attempts until the turn needs no more of them."""
        limit = asyncio.timeout(self._scene.limit_seconds)
        try:
            async with limit:
                await self._run_attempt()
                while not self._cancelled and self._journal.needs_attempt(self._scene.answers):
                    await self._run_attempt()
        except TimeoutError:
            if not limit.expired():
                raise
            raise AgentStuck(self._how_far()) from None
        return Transcript(
            events=tuple(self._journal.events),
            journal=self._journal.history,
            executions=tuple(self._bodies.executions),
            stop_seconds=self._stop_seconds,
        )

    async def _run_attempt(self) -> None:
        attempt = self._attempt(*self._journal.begin())
        over = asyncio.Event()
        attempt.start(over.set)
        try:
            await self._read(attempt)
        finally:
            if not attempt.complete:
                attempt.abandon()
            await over.wait()
        if self._struck_at is not None:
            self._stop_seconds = asyncio.get_running_loop().time() - self._struck_at
            self._struck_at = None

    def _attempt(self, turn: TurnRef, ledger: Ledger) -> Attempt:
        return Attempt(
            turn,
            self._agent,
            ledger,
            self._options(held=self._holds(turn.attempt)),
            instance_id="in-process",
            wall_clock=self._scene.wall_clock,
        )

    def _options(self, *, held: bool) -> TurnOptions:
        """Return how to run an attempt; one that is held closes its gates at once."""
        scene = self._scene
        return TurnOptions(
            mode=scene.mode,
            hold_seconds=0.0 if held else scene.limit_seconds,
            heartbeat_seconds=scene.limit_seconds,
            max_model_calls=scene.max_model_calls,
            grace_seconds=scene.grace_seconds,
        )

    async def _read(self, attempt: Attempt) -> None:
        """Commit what the attempt says, and act on it, until it has no more to say or is lost."""
        while pack := await attempt.outbox.next_pack():
            for event in pack:
                self._journal.commit(event)
                if not await self._act_on(attempt, event):
                    return

    async def _act_on(self, attempt: Attempt, event: Event) -> bool:
        """Open the gate that an event stands for, and let happen what is due; ``False`` if lost."""
        due = [fault for fault in self._faults if fault.after == len(self._journal.events)]
        if any(self._strike(attempt, fault) for fault in due if fault.at_gate):
            return False
        self._acknowledge(attempt, event)
        late = [fault for fault in due if not fault.at_gate]
        if late:
            await _let_run()
        return not any(self._strike(attempt, fault) for fault in late)

    def _acknowledge(self, attempt: Attempt, event: Event) -> None:
        started = event.payload
        if not isinstance(started, ToolCallStarted) or not started.checkpoint_required:
            return
        if self._scene.mode is not CheckpointMode.SUSPEND and not self._holds(event.attempt):
            self._journal.open_gate(started.call_id)
            attempt.acknowledge(event.index)

    def _strike(self, attempt: Attempt, fault: Fault) -> bool:
        """Do it to the attempt, and say whether that is now lost."""
        if fault.act is Act.DRAIN:
            attempt.drain()
            return False
        self._struck_at = asyncio.get_running_loop().time()
        if fault.act is Act.CANCEL:
            self._cancelled = True
            attempt.cancel("cancelled by the test", self._scene.grace_seconds)
            return False
        attempt.abandon()
        return True

    def _holds(self, attempt: int) -> bool:
        return attempt == 1 and any(fault.act is Act.HOLD for fault in self._faults)

    def _how_far(self) -> str:
        events = self._journal.events
        return (
            f"the turn did not end within {self._scene.limit_seconds} s; it stands at:\n"
            f"{point(events, len(events))}"
        )


async def _let_run() -> None:
    for _ in range(HEAD_START_TURNS):
        await asyncio.sleep(0)
