"""Checks that an agent can be stopped anywhere and leaves nothing behind.

Knows nothing of how a turn is run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Unpack

from agent_runtime.events import Part
from agent_runtime.testing.bodies import Execution
from agent_runtime.testing.faults import Act, Fault, faults_at
from agent_runtime.testing.harness import Scene, Setting
from agent_runtime.testing.sequence import assert_well_formed
from agent_runtime.testing.tokens import point, shape
from agent_runtime.testing.transcript import Transcript

POLL_SECONDS = 0.01
"""How often a body in a thread, which can tell nobody, is looked at."""


async def assert_disposable(
    agent: object,
    input: str | Sequence[Part] = "",
    *,
    after: int | Iterable[int] | None = None,
    **setting: Unpack[Setting],
) -> None:
    """Check that the turn can be cancelled, or its attempt lost, after any of its events.

    Each time the attempt must be over within ``grace_seconds``, no task and no tool body may be
    left of it, and the stream must be well formed. A call at its gate is also stopped before that
    opens.

    Args:
        after: the number of events after which to stop, or several; after each of them by default.
        setting: see ``agent_runtime.testing.Scene``.

    Raises:
        AssertionError: something was left, came too late, or is malformed.
        ValueError: the turn does not have that many events.
    """
    scene = Scene(agent, input, **setting)
    whole = await scene.run()
    places = _places(after, len(whole.events))
    for place in places:
        for fault in faults_at(place, whole.events, Act.CANCEL, Act.CRASH):
            await _dispose(scene, fault, whole)


def _places(after: int | Iterable[int] | None, count: int) -> list[int]:
    if after is None:
        return list(range(1, count + 1))
    places = [after] if isinstance(after, int) else list(after)
    for place in places:
        if not 1 <= place <= count:
            raise ValueError(f"the turn has {count} events, so it cannot be stopped after {place}")
    return places


async def _dispose(scene: Scene, fault: Fault, whole: Transcript) -> None:
    before = asyncio.all_tasks()
    stopped = await scene.run(fault)
    left = await _left_of(before, stopped.executions, scene.grace_seconds)
    where = f"{fault}:\n{point(whole.events, fault.after - 1)}"
    if left:
        raise AssertionError(f"still running {scene.grace_seconds} s after {where}\n{left}")
    if stopped.stop_seconds > scene.grace_seconds:
        raise AssertionError(
            f"it took {stopped.stop_seconds:.3f} s to stop, where {scene.grace_seconds} s are "
            f"allowed, on {where}"
        )
    try:
        assert_well_formed(stopped)
    except AssertionError as malformed:
        raise AssertionError(f"{malformed}\n{shape(stopped)}\non {where}") from None


async def _left_of(
    before: set[asyncio.Task[Any]], executions: Sequence[Execution], grace_seconds: float
) -> str:
    """Say what still runs, once it had its time to stop; empty if nothing does."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace_seconds
    tasks = asyncio.all_tasks() - before
    if tasks:
        _, tasks = await asyncio.wait(tasks, timeout=grace_seconds)
    while not all(execution.ended for execution in executions) and loop.time() < deadline:
        await asyncio.sleep(POLL_SECONDS)
    bodies = [f"tool {run.tool} ({run.call_id})" for run in executions if not run.ended]
    return "\n".join(sorted([*(_describe(task) for task in tasks), *bodies]))


def _describe(task: asyncio.Task[Any]) -> str:
    code = getattr(task.get_coro(), "__qualname__", "unknown")
    return f"task {task.get_name()!r} ({code})"
