"""A rule-based demo on real local tools. It has no model, and says so.

Knows nothing of how its tools work. Its rules are a table: a pattern, and what is done with what the
pattern found.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agent_runtime.agent import Agent, agent
from agent_runtime.context import TurnContext
from agent_runtime.demo.pace import reason_words, say_words, words_of
from agent_runtime.demo.settings import DemoSettings
from agent_runtime.errors import ToolFailed, ToolNotExecuted, ToolOutcomeUnknown
from agent_runtime.tools import Tool

MAX_COUNT = 50_000

HELP = """I am a rule-based demo: no language model, only a few real tools. You can say:
help
count to 500 (streams many words)
calc (2 + 3) * 4
explain (2 + 3) * 4 (reasons first)
search lease (looks in the project's documents)
read readme
report (SQL over the project's cases)
slow report (the same, taking its time, with progress)
two tools (a calculation and a report at once)
note: buy milk (appends to a file; never done twice)
remind me: call home (asks for your permission first)
colour (lets you pick one in your browser)"""

REASONING = """A rule of mine begins with "explain", so this is a calculation: %s.
I could do it by myself, but the calculator is never wrong. I call it, and then say in which order
its parts were worked out."""

UNKNOWN = "I am a rule-based demo and have no rule for that. Say: help"


@dataclass(frozen=True, slots=True)
class Turn:
    """What a rule works with."""

    ctx: TurnContext
    word_seconds: float

    async def say(self, text: str) -> None:
        """Say a text word by word."""
        await say_words(self.ctx, words_of(text), self.word_seconds)

    async def call(self, tool: str, **arguments: object) -> Any:
        """Call a tool and return its result."""
        return await self.ctx.call_tool(tool, arguments)


Rule = Callable[[Turn, re.Match[str]], Awaitable[None]]


def make_assistant(settings: DemoSettings, tools: Iterable[Tool]) -> Agent:
    """Return the agent."""

    @agent(name="assistant", tools=tools)
    async def assistant(ctx: TurnContext) -> None:
        turn = Turn(ctx, settings.word_seconds)
        text = ctx.input_text.strip()
        for pattern, rule in RULES:
            if match := pattern.fullmatch(text):
                await _follow(turn, rule, match)
                return
        await turn.say(UNKNOWN)

    return assistant


async def _follow(turn: Turn, rule: Rule, match: re.Match[str]) -> None:
    try:
        await rule(turn, match)
    except ToolOutcomeUnknown as failure:
        await turn.say(
            f"The tool {failure.tool} was interrupted. It may or may not have done its work, "
            "so I did not run it again. Please check."
        )
    except ToolNotExecuted as failure:
        await turn.say(failure.user_message or f"Then {failure.tool} was not run.")
    except ToolFailed as failure:
        await turn.say(failure.user_message or f"The tool {failure.tool} failed: {failure.reason}.")


async def _help(turn: Turn, match: re.Match[str]) -> None:
    await turn.say(HELP)


async def _count(turn: Turn, match: re.Match[str]) -> None:
    last = min(int(match["number"]), MAX_COUNT)
    words = (f"{number} " if number < last else f"{number}" for number in range(1, last + 1))
    await say_words(turn.ctx, words, turn.word_seconds)


async def _calculate(turn: Turn, match: re.Match[str]) -> None:
    result = await turn.call("calculate", expression=match["expression"])
    await turn.say(f"{match['expression']} = {result}")


async def _explain(turn: Turn, match: re.Match[str]) -> None:
    expression = match["expression"]
    await reason_words(turn.ctx, words_of(REASONING % expression), turn.word_seconds)
    result = await turn.call("calculate", expression=expression)
    await turn.say(f"{expression} is {result}: brackets first, then * and /, then + and -.")


async def _pick_colour(turn: Turn, match: re.Match[str]) -> None:
    colour = await turn.call("pick_colour", prompt="Which colour do you like?")
    await turn.say(f"You picked {colour}.")


async def _search(turn: Turn, match: re.Match[str]) -> None:
    hits = await turn.call("search_docs", query=match["query"])
    lines = [f"{hit['document']}, line {hit['line']}: {hit['text']}" for hit in hits]
    await turn.say("\n".join(lines) or "Nothing found.")


async def _read(turn: Turn, match: re.Match[str]) -> None:
    await turn.say(await turn.call("read_doc", name=match["name"]))


async def _report(turn: Turn, match: re.Match[str]) -> None:
    tool = "slow_report" if match["slow"] else "report"
    await turn.say(_as_lines(await turn.call(tool)))


async def _two_tools(turn: Turn, match: re.Match[str]) -> None:
    await turn.say("Running two tools at once.")
    total, rows = await asyncio.gather(
        turn.call("calculate", expression="6 * 7"), turn.call("report")
    )
    await turn.say(f"The calculation gave {total}. The report:\n{_as_lines(rows)}")


async def _note(turn: Turn, match: re.Match[str]) -> None:
    await turn.call("append_note", text=match["text"])
    await turn.say(f"Noted: {match['text']}")


async def _remind(turn: Turn, match: re.Match[str]) -> None:
    await turn.call("remind_me", text=match["text"])
    await turn.say(f"I wrote the reminder down: {match['text']}")


def _as_lines(rows: list[dict[str, Any]]) -> str:
    return "\n".join(f"{row['area']}: {row['cases']} cases" for row in rows)


def _rule(pattern: str, rule: Rule) -> tuple[re.Pattern[str], Rule]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL), rule


RULES = (
    _rule(r"(help|hello|hi|\?)[.!]?", _help),
    _rule(r"count to (?P<number>\d{1,9})", _count),
    _rule(r"two tools.*", _two_tools),
    _rule(r"(?P<slow>slow )?report", _report),
    _rule(r"note: *(?P<text>.+)", _note),
    _rule(r"remind me:? *(?P<text>.+)", _remind),
    _rule(r"(pick a )?colou?r[.!?]?", _pick_colour),
    _rule(r"explain:? *(?P<expression>.+)", _explain),
    _rule(r"search (?P<query>.+)", _search),
    _rule(r"read (?P<name>\w+)", _read),
    _rule(r"calc(ulate)?:? *(?P<expression>.+)", _calculate),
    _rule(r"(?P<expression>[-+(]*\d[-+*/%().\d ]*)", _calculate),
)
