"""Checks that an agent is deterministic: lost anywhere and replayed, it comes to the same.

Knows nothing of how a turn is run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import ndiff
from typing import Unpack

from agent_runtime.events import CustomEvent, ErrorReported, Outcome, Part, Safety, TurnFinished
from agent_runtime.limits import to_json
from agent_runtime.testing.faults import Act, Fault, faults_at
from agent_runtime.testing.harness import Scene, Setting
from agent_runtime.testing.sequence import assert_well_formed
from agent_runtime.testing.tokens import point, shape
from agent_runtime.testing.transcript import Transcript

NONDETERMINISTIC = "NONDETERMINISTIC_AGENT"


async def assert_replayable(
    agent: object, input: str | Sequence[Part] = "", **setting: Unpack[Setting]
) -> None:
    """Check that the turn survives the loss of its attempt after any of its events.

    It is run undisturbed twice, and then once for every event (twice where a gate is), crashed
    there and resumed from the journal. Each time the stream must be well formed, no unsafe tool may
    run more often with the same arguments than undisturbed, and the turn must come to the same
    messages, calls, state and end. The last is not asked of a turn with a call of unknown outcome:
    that the agent may do something else then is the point of telling it.

    Tools must answer the same each time, so give fakes for those that do not.

    Args:
        setting: see ``agent_runtime.testing.Scene``.

    Raises:
        AssertionError: it does not; the text says after which event, and what differs.
    """
    scene = Scene(agent, input, **setting)
    whole, again = await scene.run(), await scene.run()
    _require_same(whole, again, "two undisturbed runs differ")
    for place in range(1, len(whole.events)):
        for fault in faults_at(place, whole.events, Act.CRASH):
            await _crash(scene, fault, whole)


async def _crash(scene: Scene, fault: Fault, whole: Transcript) -> None:
    resumed = await scene.run(fault)
    where = f"{fault}:\n{point(whole.events, fault.after - 1)}"
    try:
        assert_well_formed(resumed)
    except AssertionError as malformed:
        raise AssertionError(f"{malformed}\n{shape(resumed)}\non {where}") from None
    _require_once(whole, resumed, where)
    if _fails_as_nondeterministic(resumed):
        raise AssertionError(f"the replay makes another call than the journal holds, on {where}")
    if not any(call.outcome is Outcome.UNKNOWN for call in resumed.calls):
        _require_same(whole, resumed, f"the resumed turn comes to something else, on {where}")


def _require_once(whole: Transcript, resumed: Transcript, where: str) -> None:
    allowed, ran = _unsafe_runs(whole), _unsafe_runs(resumed)
    for (tool, arguments), count in ran.items():
        # What the undisturbed turn never came to may still run once.
        if count > max(1, allowed[tool, arguments]):
            raise AssertionError(
                f"the unsafe tool {tool} ran {count} times with {arguments}, on {where}\n"
                f"{shape(resumed)}"
            )


def _unsafe_runs(transcript: Transcript) -> Counter[tuple[str, str]]:
    return Counter(
        (run.tool, run.arguments_json)
        for run in transcript.executions
        if run.safety is Safety.UNSAFE
    )


def _fails_as_nondeterministic(transcript: Transcript) -> bool:
    problem = transcript.ending.problem if transcript.ending is not None else None
    return problem is not None and problem.reason == NONDETERMINISTIC


def _require_same(expected: Transcript, found: Transcript, otherwise: str) -> None:
    before, after = list(_result(expected)), list(_result(found))
    if before != after:
        lines = "\n".join(line for line in ndiff(before, after) if not line.startswith("?"))
        raise AssertionError(f"{otherwise}\n{lines}")


def _result(transcript: Transcript) -> Iterator[str]:
    """Say line by line what a turn came to. How long it took, and its attempts, do not count."""
    for message in transcript.messages:
        said = to_json([message.reasoning, message.text] if message.reasoning else message.text)
        yield f"{message.message_id} {message.status}: {said}"
    for call in transcript.calls:
        outcome = call.outcome or "waits"
        arguments, result = to_json(call.arguments), to_json(call.result)
        yield f"{call.call_id} {call.tool}({arguments}) {outcome}: {result}"
    for payload in transcript.payloads:
        if isinstance(payload, CustomEvent):
            yield f"custom {payload.name}: {payload.value_json}"
        elif isinstance(payload, ErrorReported):
            yield f"notice {payload.problem.reason}"
    for key, value in sorted(transcript.state.items()):
        yield f"state {key} = {to_json(value)}"
    yield _end(transcript.ending)


def _end(ending: TurnFinished | None) -> str:
    if ending is None:
        return "left waiting"
    return (
        f"{ending.outcome} {ending.problem.reason if ending.problem is not None else ''}".rstrip()
    )
