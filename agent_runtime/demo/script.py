"""An agent that does what its input lists: for tests, for trying things out, for reading first.

The input is a JSON list of steps, done in order. A step is an object with one of these keys:

``say``         says the text, word by word. ``words``: how many words to stream, the text's own
                repeated as often as needed. ``word_ms``: pause after each word.
``reason``      discloses the text as reasoning.
``tool``        calls the tool of that name with ``args`` (an object). A failure is passed over;
                with ``"must": true`` it fails the turn. ``"tell": true`` says the result or the failure.
``parallel``    a list of ``tool``, ``sleep_tool`` and ``ask`` steps, done at once.
``sleep_tool``  calls a tool that sleeps that many seconds with progress. ``safety``: ``read_only``
                (default), ``idempotent`` or ``unsafe``.
``ask``         asks the person that question, and says the answer. ``schema``: of the answer.
``state``       an object: sets each key; ``null`` removes it.
``custom``      an object with ``name`` and ``value``: emits the event.
``notice``      reports that problem (a reason in UPPER_SNAKE_CASE) and goes on.
``wait``        waits that many seconds outside of any tool, in silence.
``fail``        ``true``: the agent raises. A text: the turn fails with that reason.

For example: ``[{"say": "one two three", "words": 20, "word_ms": 10}, {"tool": "append_note",
"args": {"text": "milk"}}, {"sleep_tool": 5}, {"ask": "Go on?"}]``.

Replayed like every agent: recorded messages and calls are passed over, ``wait`` waits again.
The tools are those of ``agent_runtime.demo.toolbox``. Knows nothing of how they work.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Iterable
from typing import Any

from agent_runtime.agent import Agent, agent
from agent_runtime.context import TurnContext
from agent_runtime.demo.pace import say_slowly, say_words, words_of
from agent_runtime.demo.settings import DemoSettings
from agent_runtime.errors import ToolFailed, TurnFailed
from agent_runtime.limits import clean_text
from agent_runtime.tools import Tool

SLEEP_TOOLS = {
    "read_only": "sleep",
    "idempotent": "sleep_idempotent",
    "unsafe": "sleep_unsafe",
}

Step = dict[str, Any]


def make_script(settings: DemoSettings, tools: Iterable[Tool]) -> Agent:
    """Return the agent."""

    @agent(name="script", tools=tools)
    async def script(ctx: TurnContext) -> None:
        for step in parse_script(ctx.input_text):
            await _do(ctx, step, settings)

    return script


def parse_script(text: str) -> list[Step]:
    """Return the steps of a script.

    Raises:
        TurnFailed: it is no JSON list of steps that are known.
    """
    try:
        steps = json.loads(text)
    except (ValueError, RecursionError):
        raise _unusable("The input is not JSON.") from None
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise _unusable("The input is not a JSON list of objects.")
    for position, step in enumerate(steps):
        if not step.keys() & _KINDS:
            raise _unusable(f"Step {position + 1} has none of: {', '.join(sorted(_KINDS))}.")
    return steps


_KINDS = {
    "say",
    "reason",
    "tool",
    "parallel",
    "sleep_tool",
    "ask",
    "state",
    "custom",
    "notice",
    "wait",
    "fail",
}


async def _do(ctx: TurnContext, step: Step, settings: DemoSettings) -> None:
    match step:
        case {"say": str(text)}:
            seconds = float(step.get("word_ms", settings.word_seconds * 1000)) / 1000
            await _say(ctx, text, step.get("words"), seconds)
        case {"reason": str(text)}:
            await ctx.reason(text)
        case {"tool": _} | {"sleep_tool": _} | {"ask": _}:
            await _tell(ctx, step, await _result(step, _begin(ctx, step)), settings)
        case {"parallel": list(steps)}:
            calls = [_result(inner, _begin(ctx, inner)) for inner in steps]
            # Told in the order of the script, never in that of their ends: that would be chance.
            for inner, result in zip(steps, await asyncio.gather(*calls), strict=True):
                await _tell(ctx, inner, result, settings)
        case {"fail": reason}:
            if isinstance(reason, str):
                raise TurnFailed(reason, user_message="The script asked for a failure.")
            raise RuntimeError("the script asked for a failure")
        case _:
            await _do_quietly(ctx, step)


async def _do_quietly(ctx: TurnContext, step: Step) -> None:
    match step:
        case {"state": dict(changes)}:
            for key, value in changes.items():
                await (ctx.remove_state(key) if value is None else ctx.set_state(key, value))
        case {"custom": {"name": str(name), "value": value}}:
            await ctx.custom(name, value)
        case {"notice": str(reason)}:
            await ctx.notice(reason, user_message="The script asked for a notice.")
        case {"wait": int() | float() as seconds}:
            await asyncio.sleep(seconds)
        case _:
            raise _unusable("A step has a value of the wrong kind.")


def _begin(ctx: TurnContext, step: Step) -> Awaitable[Any]:
    """Number the call now, so that a parallel batch is in the order of the script."""
    match step:
        case {"tool": str(name)}:
            return ctx.call_tool(name, step.get("args", {}))
        case {"sleep_tool": int() | float() as seconds}:
            name = SLEEP_TOOLS.get(step.get("safety", "read_only"), "sleep")
            return ctx.call_tool(name, {"seconds": seconds})
        case {"ask": str(prompt)}:
            return ctx.ask(prompt, step.get("schema"))
    raise _unusable("Only tool, sleep_tool and ask steps can be calls.")


async def _result(step: Step, call: Awaitable[Any]) -> Any:
    try:
        return await call
    except ToolFailed as failure:
        if step.get("must"):
            raise
        return f"{failure.outcome}: {failure.reason}"


async def _tell(ctx: TurnContext, step: Step, result: Any, settings: DemoSettings) -> None:
    if step.get("tell") or "ask" in step:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        await say_slowly(ctx, clean_text(text), settings.word_seconds)


async def _say(ctx: TurnContext, text: str, count: object, word_seconds: float) -> None:
    words = words_of(text)
    if isinstance(count, int) and words:
        spaced = [word if word[-1].isspace() else f"{word} " for word in words]
        words = list(itertools.islice(itertools.cycle(spaced), max(0, count)))
    await say_words(ctx, words, word_seconds)


def _unusable(user_message: str) -> TurnFailed:
    return TurnFailed("UNUSABLE_SCRIPT", user_message=user_message)
