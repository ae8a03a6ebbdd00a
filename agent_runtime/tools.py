"""A tool, as its author writes it: a typed function with a promise about running it again.

Knows nothing of turns, gates or the wire. A tool body is run by ``agent_runtime.execution``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, get_type_hints

from agent_runtime.events import Executor, Safety
from agent_runtime.schema import Schema, parameters_schema


class Progress(Protocol):
    """Takes a progress report of a running tool, from any thread."""

    def __call__(self, message: str, fraction: float | None) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of the call it runs in. A tool asks for it with a parameter of this type."""

    session_id: str
    turn_id: str
    call_id: str
    report: Progress

    @property
    def idempotency_key(self) -> str:
        """The same on every execution of this call: pass it on, so that acting twice is noticed."""
        return f"{self.session_id}/{self.turn_id}/{self.call_id}"

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Tell the viewers how far the tool is. Never waits; under load only the latest counts."""
        self.report(message, fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that agents can call by name. Made by ``tool``."""

    name: str
    description: str
    function: Callable[..., Any]
    parameters: Schema
    """JSON Schema of the arguments, an object."""
    safety: Safety
    executor: Executor
    approval: bool
    timeout_seconds: float | None
    context_parameter: str | None

    @property
    def is_async(self) -> bool:
        """Whether the body can be cancelled. One that is not runs in a thread to its end."""
        return inspect.iscoroutinefunction(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the plain function, ungated and unrecorded: for the tool's own unit tests."""
        return self.function(*args, **kwargs)


def tool(
    *,
    replay_safety: str = "unsafe",
    name: str | None = None,
    executor: str = "runtime",
    approval: bool = False,
    timeout_seconds: float | None = None,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function.

    Args:
        replay_safety: ``read_only`` (no side effects), ``idempotent`` (safe to repeat as long as the
            idempotency key is passed on) or ``unsafe`` (never run again without a decision).
        name: the name that models use; the function's own by default.
        executor: ``runtime``, or ``client`` for a tool that the user's browser runs: its body here
            is never called, and the turn suspends until the result comes back.
        approval: suspend the turn until a person allows the call.
        timeout_seconds: how long the body may run. A body in a thread is only given up, not stopped.

    Raises:
        TypeError: the signature says too little or too much; see ``agent_runtime.schema``.
        ValueError: an unknown ``replay_safety`` or ``executor``.
    """
    safety, place = Safety(replay_safety), Executor(executor)
    if place is Executor.PROVIDER:
        raise ValueError(
            "a tool at the model provider cannot be gated, so it cannot be declared here"
        )

    def decorate(function: Callable[..., Any]) -> Tool:
        context_parameter = _context_parameter(function)
        return Tool(
            name=name or function.__name__,
            description=inspect.getdoc(function) or "",
            function=function,
            parameters=parameters_schema(function, context_parameter),
            safety=safety,
            executor=place,
            approval=approval,
            timeout_seconds=timeout_seconds,
            context_parameter=context_parameter,
        )

    return decorate


def _context_parameter(function: Callable[..., Any]) -> str | None:
    hints = get_type_hints(function)
    return next((name for name, hint in hints.items() if hint is ToolContext), None)
