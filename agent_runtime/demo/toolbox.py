"""The tools of the demo agents: real, local, and without keys.

Knows nothing of who calls them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from agent_runtime.demo.calculator import calculate
from agent_runtime.demo.library import Library
from agent_runtime.demo.report import count_by_area
from agent_runtime.demo.settings import DemoSettings
from agent_runtime.tools import Tool, ToolContext, tool

PROGRESS_SECONDS = 3.0
MAX_TEXT_BYTES = 4 * 1024 * 1024


def make_toolbox(settings: DemoSettings) -> list[Tool]:
    """Return the tools, bound to their settings."""
    library = Library(settings.docs)

    @tool(replay_safety="read_only", name="calculate")
    def calculate_tool(expression: str) -> float | int:
        """Work out an arithmetic expression such as (2 + 3) * 4."""
        return calculate(expression)

    @tool(replay_safety="read_only")
    def search_docs(query: str) -> list[dict[str, object]]:
        """Find lines of the project's own documents that hold all words of the query."""
        return library.search(query)

    @tool(replay_safety="read_only")
    def read_doc(name: str) -> str:
        """Read the beginning of one of the project's own documents."""
        return library.read(name)

    @tool(replay_safety="read_only")
    def report() -> list[dict[str, object]]:
        """Count the field cases that the project must withstand, by area, with SQL."""
        return count_by_area()

    @tool(replay_safety="read_only")
    async def slow_report(ctx: ToolContext) -> list[dict[str, object]]:
        """The same report, slowly: it reports its progress every few seconds."""
        await _work(ctx, settings.slow_seconds)
        return count_by_area()

    @tool(replay_safety="unsafe")
    def append_note(text: str, ctx: ToolContext) -> dict[str, object]:
        """Append a note to the notes file. Acting twice appends twice."""
        return _append(settings.notes, {"key": ctx.idempotency_key, "text": text})

    @tool(replay_safety="unsafe", approval=True)
    def remind_me(text: str, ctx: ToolContext) -> dict[str, object]:
        """Write a reminder to the notes file, once a person has allowed it."""
        return _append(settings.notes, {"key": ctx.idempotency_key, "reminder": text})

    return [
        calculate_tool,
        search_docs,
        read_doc,
        report,
        slow_report,
        append_note,
        remind_me,
        *_test_tools(),
    ]


def _test_tools() -> list[Tool]:
    """Tools with nothing to them but their behaviour, for scripts and tests."""

    @tool(replay_safety="read_only")
    async def sleep(seconds: float, ctx: ToolContext) -> dict[str, object]:
        """Sleep, with progress. Safe to repeat."""
        await _work(ctx, seconds)
        return {"slept_seconds": seconds}

    @tool(replay_safety="idempotent", name="sleep_idempotent")
    async def sleep_idempotent(seconds: float, ctx: ToolContext) -> dict[str, object]:
        """Sleep, with progress. Safe to repeat with the same key."""
        await _work(ctx, seconds)
        return {"slept_seconds": seconds, "key": ctx.idempotency_key}

    @tool(replay_safety="unsafe", name="sleep_unsafe")
    async def sleep_unsafe(seconds: float, ctx: ToolContext) -> dict[str, object]:
        """Sleep, with progress. Counts as unsafe to repeat."""
        await _work(ctx, seconds)
        return {"slept_seconds": seconds}

    @tool(replay_safety="read_only")
    def make_text(size_bytes: int) -> str:
        """Return a text of that size, to see what becomes of large results."""
        return "x" * max(0, min(size_bytes, MAX_TEXT_BYTES))

    @tool(replay_safety="read_only")
    def always_fails() -> None:
        """Fail."""
        raise RuntimeError("this tool always fails")

    @tool(executor="client")
    def pick_colour(prompt: str) -> str:
        """Let the user pick a colour in the browser."""
        raise AssertionError("runs in the browser")

    return [sleep, sleep_idempotent, sleep_unsafe, make_text, always_fails, pick_colour]


async def _work(ctx: ToolContext, seconds: float) -> None:
    """Pass the time, and say every few seconds how much of it is gone."""
    passed = 0.0
    while passed < seconds:
        ctx.progress(f"{passed:.0f} of {seconds:.0f} s", passed / seconds)
        step = min(PROGRESS_SECONDS, seconds - passed)
        await asyncio.sleep(step)
        passed += step


def _append(path: Path, row: dict[str, object]) -> dict[str, object]:
    """Append one line in one write, so that lines of several processes do not mix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return {"appended": True}
