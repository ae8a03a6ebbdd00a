"""A search to be run, and whether it came out as it should.

Knows nothing of which searches there are.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.model.explore import Outcome, Search
from tests.simulation.model.rules import Rules
from tests.simulation.model.state import Scope, World


@dataclass(frozen=True, slots=True)
class Job:
    """A search, and the property that it must find violated."""

    name: str
    rules: Rules
    scope: Scope
    violates: str = ""
    states: int = 0
    """How many there must be, if that is known."""

    def succeeded(self, outcome: Outcome) -> bool:
        """Whether the outcome is the one that was to be."""
        if self.violates:
            return outcome.fault is not None and outcome.fault.split()[0] == self.violates
        return outcome.complete and self.states in (0, outcome.states)


def search(job: Job) -> Outcome:
    """Search one world to its end, or to the first fault."""
    return Search(World(job.rules, job.scope)).run()


def describe(scope: Scope) -> str:
    """Return the scope in a few words."""
    budget = [f"{n} {kind}" for kind, n in scope.budget._asdict().items() if n]
    agent = f"a runtime, {scope.attempts} attempts" if scope.attempts else "no runtime"
    turns = f", {scope.turns} turns" if scope.turns > 1 else ""
    tokens = f"{scope.tokens_before}+{scope.tokens_after} tokens"
    return f"{agent}{turns}, {tokens}: {', '.join(budget) or 'no faults'}"
