"""What an author implements, and how a runtime finds it by ``module:attribute``.

Knows nothing of how a turn is run.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from agent_runtime.context import TurnContext
from agent_runtime.tools import Tool

Run = Callable[[TurnContext], Awaitable[None]]


class AgentLoadError(Exception):
    """An agent cannot be loaded. The text is one line for the person who configured it."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent: a name, what it does with a turn, and the tools that it may call."""

    name: str
    run: Run
    tools: Mapping[str, Tool]


def agent(*, name: str | None = None, tools: Iterable[Tool] = ()) -> Callable[[Run], Agent]:
    """Make an agent of ``async def f(ctx: TurnContext) -> None``.

    Raises:
        ValueError: two tools have one name.
    """

    def decorate(function: Run) -> Agent:
        default: str = getattr(function, "__name__", "agent")
        return Agent(name or default, function, _by_name(tools))

    return decorate


def load_agents(names: str) -> dict[str, Agent]:
    """Load a comma-separated list of ``module:attribute``; the first is the default.

    Raises:
        AgentLoadError: one of them is not there, is no agent, or shares its name with another.
    """
    agents: dict[str, Agent] = {}
    for place in filter(None, (name.strip() for name in names.split(","))):
        loaded = _load(place)
        if loaded.name in agents:
            raise AgentLoadError(f"{place}: another agent is called {loaded.name!r} already")
        agents[loaded.name] = loaded
    if not agents:
        raise AgentLoadError("no agent is configured")
    return agents


def as_agent(value: object) -> Agent:
    """Return an agent for what an author wrote: an ``Agent``, an async function, or a class.

    A class, or an instance of one, has ``async def run(self, ctx)`` and may have ``name`` and
    ``tools``; a plain function may carry the latter two as attributes.

    Raises:
        TypeError: it is none of these.
        ValueError: two tools have one name.
    """
    if isinstance(value, Agent):
        return value
    holder = value() if isinstance(value, type) else value
    run = holder if inspect.iscoroutinefunction(holder) else getattr(holder, "run", None)
    if not inspect.iscoroutinefunction(run):
        raise TypeError("neither an async function nor a class with `async def run(self, ctx)`")
    default = getattr(holder, "__name__", type(holder).__name__)
    return Agent(getattr(holder, "name", default), run, _by_name(getattr(holder, "tools", ())))


def _load(place: str) -> Agent:
    module_name, separator, attribute = place.partition(":")
    if not (module_name and separator and attribute):
        raise AgentLoadError(f"{place!r} is not of the form module:attribute")
    # Boundary: importing an agent runs its author's code, which may raise anything.
    try:
        return as_agent(getattr(importlib.import_module(module_name), attribute))
    except Exception as error:
        reason = " ".join(str(error).split()) or "no further detail"
        raise AgentLoadError(f"cannot load {place}: {type(error).__name__}: {reason}") from error


def _by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for item in tools:
        if item.name in found:
            raise ValueError(f"two tools are called {item.name!r}")
        found[item.name] = item
    return found
