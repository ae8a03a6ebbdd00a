"""Tools: their schema, the check of arguments, and how a body ends."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import pytest

from agent_runtime.errors import ToolError
from agent_runtime.events import Outcome, ToolCallFinished
from agent_runtime.execution import run_tool
from agent_runtime.schema import find_mismatch
from agent_runtime.tools import Tool, ToolContext, tool
from tests.support.virtual_loop import run_virtual


def context() -> ToolContext:
    return ToolContext("s", "t", "c1", lambda message, fraction: None)


async def run(chosen: Tool, **arguments: object) -> ToolCallFinished:
    return await run_tool(chosen, arguments, context())


def test_the_schema_follows_the_signature() -> None:
    @tool(name="find", replay_safety="read_only")
    async def search(
        query: str,
        ctx: ToolContext,
        *,
        limit: int = 5,
        tags: list[str] | None = None,
        order: Literal["new", "old"] = "new",
        extra: dict[str, float] | None = None,
        anything: Any = None,
    ) -> None:
        """Find things."""

    assert (search.name, search.description) == ("find", "Find things.")
    assert search.context_parameter == "ctx"
    assert search.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "order": {"enum": ["new", "old"]},
            "extra": {
                "anyOf": [
                    {"type": "object", "additionalProperties": {"type": "number"}},
                    {"type": "null"},
                ]
            },
            "anything": {},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    fits = {"query": "a", "limit": 1, "tags": ["x"], "extra": {"k": 1}, "anything": [1]}
    assert find_mismatch(search.parameters, fits) is None
    for wrong in (
        {"query": 1},
        {"query": "a", "limit": True},
        {"query": "a", "limit": 1.5},
        {"query": "a", "tags": [1]},
        {"query": "a", "order": "odd"},
        {"query": "a", "extra": {"k": "v"}},
        {"query": "a", "more": 1},
        {},
    ):
        assert find_mismatch(search.parameters, wrong)


def test_a_mismatch_never_quotes_the_value() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert "s3cret" not in str(find_mismatch(schema, {"a": "s3cret"}))


def test_a_signature_that_says_too_little_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a name and a type"):

        @tool()
        def untyped(x) -> None:  # type: ignore[no-untyped-def]
            ...

    with pytest.raises(TypeError, match="needs a name and a type"):

        @tool()
        def star(*x: int) -> None: ...

    with pytest.raises(TypeError, match="no JSON Schema"):

        @tool()
        def odd(x: bytes) -> None: ...


@pytest.mark.parametrize("options", [{"replay_safety": "maybe"}, {"executor": "provider"}])
def test_an_unknown_promise_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"maybe|provider"):
        tool(**options)  # type: ignore[arg-type]


async def test_a_synchronous_body_runs_outside_the_loop() -> None:
    @tool()
    def where() -> str:
        return threading.current_thread().name

    assert (await run(where)).result_json == '"tool"'


@pytest.mark.parametrize("error", [RuntimeError("s3cret"), StopIteration("s3cret"), SystemExit(3)])
async def test_whatever_a_body_in_a_thread_raises_is_its_failure_alone(
    error: BaseException,
) -> None:
    @tool()
    def failing() -> None:
        raise error

    finished = await run(failing)
    assert finished.outcome is Outcome.FAILED
    assert finished.problem is not None
    assert finished.problem.reason == "TOOL_ERROR"
    assert "s3cret" not in str(finished)


async def test_a_tool_error_carries_words_for_the_user() -> None:
    @tool()
    async def refusing() -> None:
        raise ToolError("The shop is closed.", reason="SHOP_CLOSED", retryable=True)

    problem = (await run(refusing)).problem
    assert problem is not None
    assert (problem.reason, problem.user_message, problem.retryable) == (
        "SHOP_CLOSED",
        "The shop is closed.",
        True,
    )


@pytest.mark.parametrize("result", [object(), float("nan"), {1: {2}}, b"x"])
async def test_a_result_without_a_json_form_is_a_failure(result: object) -> None:
    @tool()
    async def odd() -> object:
        return result

    finished = await run(odd)
    assert finished.problem is not None
    assert (finished.outcome, finished.problem.reason) == (Outcome.FAILED, "RESULT_NOT_JSON")


@pytest.mark.parametrize(
    ("safety", "outcome"),
    [
        ("read_only", Outcome.FAILED),
        ("idempotent", Outcome.UNKNOWN),
        ("unsafe", Outcome.UNKNOWN),
    ],
)
def test_a_body_that_takes_too_long_is_given_up(safety: str, outcome: Outcome) -> None:
    @tool(replay_safety=safety, timeout_seconds=5)
    async def slow() -> None:
        await asyncio.sleep(3600)

    finished = run_virtual(run(slow), limit_seconds=10)
    assert finished.outcome is outcome
    assert finished.problem is not None
    assert finished.problem.reason == "TOOL_TIMEOUT"
    assert finished.run_seconds == 5


async def test_a_tool_stays_callable_as_the_function_it_is() -> None:
    @tool()
    async def double(x: int) -> int:
        return 2 * x

    assert await double(2) == 4
