"""Running one tool body: in the loop or in a thread, with a time limit, to a result or a problem.

Knows nothing of gates, journals or the wire. A body in a thread cannot be stopped: when nobody
waits for it any more it runs to its end unheard.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from agent_runtime.errors import ToolError
from agent_runtime.events import Outcome, Problem, Safety, ToolCallFinished
from agent_runtime.limits import result_fits, to_json, truncation_marker
from agent_runtime.tools import Tool, ToolContext

T = TypeVar("T")


async def run_tool(
    tool: Tool, arguments: Mapping[str, Any], context: ToolContext
) -> ToolCallFinished:
    """Run a tool body and return how it ended. Raises only ``CancelledError``."""
    loop = asyncio.get_running_loop()
    started_at = loop.time()
    outcome, result_json, problem = await _attempt(tool, arguments, context)
    return ToolCallFinished(
        call_id=context.call_id,
        outcome=outcome,
        result_json=result_json,
        problem=problem,
        run_seconds=loop.time() - started_at,
    )


async def _attempt(
    tool: Tool, arguments: Mapping[str, Any], context: ToolContext
) -> tuple[Outcome, str, Problem | None]:
    # Boundary: a tool body is its author's code and may raise anything. Only the type of an
    # exception is told, because its text may quote the arguments.
    limit = asyncio.timeout(tool.timeout_seconds)
    try:
        async with limit:
            result = await _call_body(tool, arguments, context)
    except ToolError as error:
        return Outcome.FAILED, "", error.problem
    except Exception as error:  # noqa: BLE001
        if limit.expired():
            return _timed_out(tool)
        return Outcome.FAILED, "", Problem(reason="TOOL_ERROR", message=type(error).__name__)
    try:
        result_json = to_json(result)
    except (TypeError, ValueError, RecursionError):
        return Outcome.FAILED, "", Problem(reason="RESULT_NOT_JSON", message=type(result).__name__)
    kept = result_json if result_fits(result_json) else truncation_marker(result_json)
    return Outcome.SUCCEEDED, kept, None


def _timed_out(tool: Tool) -> tuple[Outcome, str, Problem]:
    """A read that was given up failed; anything else was released and may have had its effect."""
    outcome = Outcome.FAILED if tool.safety is Safety.READ_ONLY else Outcome.UNKNOWN
    return outcome, "", Problem(reason="TOOL_TIMEOUT", message=f"{tool.timeout_seconds} s")


async def _call_body(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> object:
    given = dict(arguments)
    if tool.context_parameter is not None:
        given[tool.context_parameter] = context
    if tool.is_async:
        result: object = await tool.function(**given)
        return result
    return await in_thread(lambda: tool.function(**given))


async def in_thread(function: Callable[[], T]) -> T:
    """Run a blocking function in a thread of its own and return what it returns or raises.

    Not ``asyncio.to_thread``: its pool is small, and at exit Python joins its threads, so a tool
    that hangs could block other sessions and hold up a shutdown. A daemon thread does neither.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        # Boundary: whatever the function raises belongs to the waiter in the loop.
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001
            _tell(loop, _set_exception, done, error)
        else:
            _tell(loop, _set_result, done, result)

    threading.Thread(target=work, name="tool", daemon=True).start()
    return await done


def _tell(loop: asyncio.AbstractEventLoop, step: Callable[..., None], *arguments: object) -> None:
    try:
        loop.call_soon_threadsafe(step, *arguments)
    except RuntimeError:
        # The loop is closed: the process is going away and nobody waits for the result.
        return


def _set_result(done: asyncio.Future[T], result: T) -> None:
    if not done.done():
        done.set_result(result)


def _set_exception(done: asyncio.Future[T], error: BaseException) -> None:
    if done.done():
        return
    # A future refuses StopIteration; and an exit asked for in a thread is the tool's failure only.
    plain = error if isinstance(error, Exception) and not isinstance(error, StopIteration) else None
    done.set_exception(plain or RuntimeError(type(error).__name__))
