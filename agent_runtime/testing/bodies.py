"""The tool bodies of an agent under test: replaced by fakes where there are some, and counted.

Knows nothing of turns. A fake replaces what a tool does, never what it promises: its name, its
arguments, its replay safety and its approval stay those of the real one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from agent_runtime.agent import Agent
from agent_runtime.events import Safety
from agent_runtime.limits import to_json
from agent_runtime.tools import Tool, ToolContext

Fakes = Mapping[str, Callable[..., Any]]
"""Tool name to the function that stands in for its body, with the same parameters."""

_CALL = "the call"
"""Keyword under which a body gets its context; being no identifier, it is no argument's name."""


@dataclass(slots=True, kw_only=True)
class Execution:
    """One run of one tool body."""

    call_id: str
    tool: str
    arguments_json: str
    safety: Safety
    ended: bool = False
    """Whether the body returned, raised, or was stopped. The watcher sets it, maybe in a thread."""


class Bodies:
    """The tools of one agent, each watched."""

    def __init__(self, fakes: Fakes) -> None:
        self.executions: list[Execution] = []
        """Every run that began, in that order."""
        self._fakes = fakes

    def watch(self, agent: Agent) -> Agent:
        """Return the agent with every tool watched.

        Raises:
            ValueError: there is a fake for a tool that the agent does not have.
        """
        if unknown := sorted(self._fakes.keys() - agent.tools.keys()):
            raise ValueError(f"{agent.name} has no tool {', '.join(unknown)} to replace")
        return replace(
            agent, tools={name: self._watched(tool) for name, tool in agent.tools.items()}
        )

    def _watched(self, tool: Tool) -> Tool:
        body = self._fakes.get(tool.name, tool.function)
        if inspect.iscoroutinefunction(body):

            async def run_async(**given: Any) -> Any:
                with self._execution(tool, given):
                    return await body(**given)

            return replace(tool, function=run_async, context_parameter=_CALL)

        def run_in_thread(**given: Any) -> Any:
            with self._execution(tool, given):
                return body(**given)

        return replace(tool, function=run_in_thread, context_parameter=_CALL)

    @contextmanager
    def _execution(self, tool: Tool, given: dict[str, Any]) -> Iterator[None]:
        """Record a run, and hand the context on under the name that the body knows, if any."""
        context: ToolContext = given.pop(_CALL)
        execution = Execution(
            call_id=context.call_id,
            tool=tool.name,
            arguments_json=to_json(given),
            # What a person allowed once is not to be repeated without asking again.
            safety=Safety.UNSAFE if tool.approval else tool.safety,
        )
        if tool.context_parameter is not None:
            given[tool.context_parameter] = context
        self.executions.append(execution)
        try:
            yield
        finally:
            execution.ended = True
