"""Texts that an author's code makes reach the stream whatever they hold, and never end it."""

from __future__ import annotations

from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import ToolFailed, TurnContext, TurnFailed, agent, tool
from agent_runtime.errors import ToolError
from agent_runtime.limits import MAX_NOTE_CHARACTERS, TooLarge
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


async def test_names_are_cleaned_and_what_is_no_name_is_refused() -> None:
    refused = []

    @agent()
    async def naming(ctx: TurnContext) -> None:
        await ctx.set_state(LONE, 1)
        await ctx.custom(LONE, 1)
        for refusing in (ctx.set_state, ctx.custom):
            try:
                await refusing(UNFIT, 1)
            except TooLarge as error:
                refused.append(str(error).partition(" is ")[0])
        try:
            await ctx.call_tool(UNFIT, {})
        except ToolFailed as failure:
            refused.append(failure.reason)

    async with serving(naming) as runtime:
        events = await runtime.turn().start().run()
    assert refused == ["state key", "name of a custom event", "UNKNOWN_TOOL"]
    changed, custom, started = events[1:4]
    assert [change.key for change in changed.state_delta.changes] == ["\N{REPLACEMENT CHARACTER}"]
    assert custom.custom_event.name == "\N{REPLACEMENT CHARACTER}"
    assert started.tool_call_started.tool_name == FIT
    assert events[-1].turn_finished.outcome == pb.TURN_OUTCOME_COMPLETED
