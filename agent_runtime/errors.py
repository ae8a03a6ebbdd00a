"""What the SDK raises into an agent, and what an agent or a tool may raise to be understood.

Knows nothing of the wire. No message here holds a prompt, an argument or a result.
"""

from __future__ import annotations

from dataclasses import replace

from agent_runtime.events import Outcome, Problem
from agent_runtime.limits import MAX_NOTE_CHARACTERS, clean_text


class ToolError(Exception):
    """Raise it in a tool: the call failed, and this is what the user may be told.

    Args:
        user_message: for the person; shown to them.
        reason: machine-readable, in UPPER_SNAKE_CASE.
        retryable: whether the same call may succeed later.
    """

    def __init__(
        self, user_message: str, *, reason: str = "TOOL_ERROR", retryable: bool = False
    ) -> None:
        super().__init__(reason)
        message = type(self).__name__
        self.problem = fit_problem(
            Problem(reason=reason, message=message, user_message=user_message, retryable=retryable)
        )


class ToolFailed(Exception):
    """A tool call did not succeed. Its outcome is in the journal; calling again is a new call."""

    def __init__(self, tool: str, problem: Problem, outcome: Outcome = Outcome.FAILED) -> None:
        super().__init__(f"{tool}: {outcome} ({problem.reason})")
        self.tool = tool
        self.problem = problem
        self.outcome = outcome

    @property
    def reason(self) -> str:
        """Machine-readable reason in UPPER_SNAKE_CASE."""
        return self.problem.reason

    @property
    def user_message(self) -> str:
        """What the user may be told; empty if there is nothing."""
        return self.problem.user_message


class ToolOutcomeUnknown(ToolFailed):
    """The tool may have run. Do not repeat it without asking the user."""


class ToolNotExecuted(ToolFailed):
    """The tool did not run: bad arguments, denied, skipped, or cancelled before its gate."""


class TurnFailed(Exception):
    """Raise it in an agent: the turn cannot go on, and this is what may be said about it."""

    def __init__(self, reason: str, *, user_message: str = "", retryable: bool = False) -> None:
        super().__init__(reason)
        message = type(self).__name__
        self.problem = fit_problem(
            Problem(reason=reason, message=message, user_message=user_message, retryable=retryable)
        )


class TokenLimitReached(Exception):
    """Raise it in an agent: the model's answer met its upper size, and so the turn ends there."""


class NondeterministicAgent(Exception):
    """A replay made a call other than the recorded one. The turn fails; nothing is run."""


class ModelCallLimitReached(Exception):
    """The turn has made as many model calls as it may. The turn ends."""


class UnusableHistory(ValueError):
    """The history handed over cannot be the journal of this turn."""


def fit_problem(problem: Problem) -> Problem:
    """Return a problem in an author's words so that it can be sent: cleaned, and cut to a note.

    It is never refused, because a tool may have had its effect before it said this.
    """
    return replace(
        problem,
        reason=_fit(problem.reason),
        message=_fit(problem.message),
        user_message=_fit(problem.user_message),
    )


def _fit(text: str) -> str:
    return clean_text(text)[:MAX_NOTE_CHARACTERS]


def failure_for(tool: str, outcome: Outcome, problem: Problem) -> ToolFailed:
    """Return the exception that tells an agent how its call ended."""
    kinds = {Outcome.UNKNOWN: ToolOutcomeUnknown, Outcome.NOT_EXECUTED: ToolNotExecuted}
    return kinds.get(outcome, ToolFailed)(tool, problem, outcome)
