"""Texts that an author's code makes reach the stream whatever they hold, and never end it."""

from __future__ import annotations

from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import ToolFailed, TurnContext, TurnFailed, agent, tool
from agent_runtime.errors import ToolError
from agent_runtime.limits import MAX_NOTE_CHARACTERS
from tests.agent_runtime.harness import ends, kind_of, serving

LONE = "\ud800"
UNFIT = LONE + "x" * 300_000
FIT = "\N{REPLACEMENT CHARACTER}" + "x" * (MAX_NOTE_CHARACTERS - 1)


def words(error: pb.ErrorInfo) -> list[str]:
    return [error.reason, error.user_message]


async def test_what_went_wrong_is_made_fit_to_be_told() -> None:
    seen = []

    @tool()
    async def effect() -> None:
        raise ToolError(UNFIT, reason=UNFIT)

    @agent(tools=[effect])
    async def failing(ctx: TurnContext) -> None:
        try:
            await ctx.call_tool(effect, {})
        except ToolFailed as failure:
            seen.append(failure.user_message)
        await ctx.notice(UNFIT, user_message=UNFIT, message=UNFIT)
        raise TurnFailed(UNFIT, user_message=UNFIT)

    async with serving(failing) as runtime:
        events = await runtime.turn().start().run()
    assert ends(events) == {"c1": "FAILED"}
    assert seen == [FIT], "the agent sees what it will see in a replay"
    reported = next(event.error_reported for event in events if kind_of(event) == "error_reported")
    finished = next(event for event in events if kind_of(event) == "tool_call_finished")
    assert words(finished.tool_call_finished.error) == [FIT, FIT]
    assert [*words(reported.error), reported.error.message] == [FIT, FIT, FIT]
    assert words(events[-1].turn_finished.error) == [FIT, FIT]
