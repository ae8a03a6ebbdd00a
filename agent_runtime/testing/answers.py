"""What the people and the browser of a test say to the calls that wait for them.

Pure. Knows nothing of how a turn is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from agent_runtime.events import Outcome, Problem, Resolution, ToolCallFinished, ToolCallStarted
from agent_runtime.ledger import waits_for_approval
from agent_runtime.limits import to_json

Answers = Mapping[str, object] | Callable[[ToolCallStarted], object]
"""Call id to its answer, or a function that answers a call.

``True`` and ``False`` allow and deny a tool that needs approval. ``DENIED`` declines any call and
``FAILED`` fails it; every other value is the result of a question or of a browser's tool. A call
that the mapping does not name goes on waiting.
"""


class NoResult(Enum):
    """An answer that is no result."""

    DENIED = "DENIED"
    FAILED = "CLIENT_ERROR"


DENIED = NoResult.DENIED
"""The person declines: the call is not executed."""

FAILED = NoResult.FAILED
"""The tool failed in the browser."""


def decide_answer(call: ToolCallStarted, answers: Answers) -> Resolution | None:
    """Return what the edge is told of a call that waits; ``None`` if nobody answers.

    Raises:
        TypeError, ValueError: the answer has no JSON form.
    """
    if callable(answers):
        return _resolution(call, answers(call))
    if call.call_id not in answers:
        return None
    return _resolution(call, answers[call.call_id])


def _resolution(call: ToolCallStarted, answer: object) -> Resolution:
    approval = waits_for_approval(call)
    if approval and answer is True:
        return Resolution(call_id=call.call_id, finished=None)
    if answer is DENIED or (approval and answer is False):
        return _ended(call, Outcome.NOT_EXECUTED, problem=Problem(reason=DENIED.value))
    if answer is FAILED:
        return _ended(call, Outcome.FAILED, problem=Problem(reason=FAILED.value))
    return _ended(call, Outcome.SUCCEEDED, result_json=to_json(answer))


def _ended(
    call: ToolCallStarted,
    outcome: Outcome,
    *,
    result_json: str = "",
    problem: Problem | None = None,
) -> Resolution:
    finished = ToolCallFinished(
        call_id=call.call_id, outcome=outcome, result_json=result_json, problem=problem
    )
    return Resolution(call_id=call.call_id, finished=finished)
