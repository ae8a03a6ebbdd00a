"""The demo agents keep what an author is asked to keep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_runtime.agent import Agent
from agent_runtime.demo.assistant import make_assistant
from agent_runtime.demo.echo import make_echo
from agent_runtime.demo.script import make_script
from agent_runtime.demo.settings import DemoSettings
from agent_runtime.demo.toolbox import make_toolbox
from agent_runtime.testing import Setting, assert_disposable, assert_replayable, run_agent, shape

SCRIPT = [
    {"reason": "why"},
    {"tool": "append_note", "args": {"text": "x"}},
    {"parallel": [{"sleep_tool": 0}, {"tool": "always_fails", "tell": True}]},
    {"state": {"k": 1, "gone": None}},
    {"custom": {"name": "acme.x", "value": [1]}},
    {"notice": "ODD"},
    {"ask": "go on?"},
    {"tool": "pick_colour", "args": {"prompt": "?"}, "tell": True},
]
SCRIPT_ANSWERS: Setting = {"answers": {"c4": "yes", "c5": "red"}}
REMINDER: Setting = {"answers": {"c1": True}}
NOTHING: Setting = {}
PATIENT: Setting = {"grace_seconds": 10.0, "limit_seconds": 60.0}
"""A machine that stands still for a moment fails no test."""

CASES = [
    ("assistant", "help", NOTHING),
    ("assistant", "count to 5", NOTHING),
    ("assistant", "two tools", NOTHING),
    ("assistant", "slow report", NOTHING),
    ("assistant", "note: buy milk", NOTHING),
    ("assistant", "remind me: call home", REMINDER),
    ("assistant", "calc 1/0", NOTHING),
    ("echo", "a b c", NOTHING),
    ("script", json.dumps(SCRIPT), SCRIPT_ANSWERS),
    ("script", '[{"say": "a"}, {"fail": "ON_PURPOSE"}]', NOTHING),
]


@pytest.fixture
def agents(tmp_path: Path) -> dict[str, Agent]:
    """The demo agents, at full speed."""
    settings = DemoSettings(
        word_seconds=0, slow_seconds=0, notes=tmp_path / "notes.jsonl", docs=tmp_path
    )
    tools = make_toolbox(settings)
    made = make_assistant(settings, tools), make_echo(settings), make_script(settings, tools)
    return {agent.name: agent for agent in made}


@pytest.mark.parametrize(("name", "said", "setting"), CASES)
async def test_a_demo_agent_is_replayable(
    agents: dict[str, Agent], name: str, said: str, setting: Setting
) -> None:
    await assert_replayable(agents[name], said, **(PATIENT | setting))


@pytest.mark.parametrize(("name", "said", "setting"), CASES)
async def test_a_demo_agent_is_disposable(
    agents: dict[str, Agent], name: str, said: str, setting: Setting
) -> None:
    await assert_disposable(agents[name], said, **(PATIENT | setting))


async def test_the_shape_of_a_demo_turn(agents: dict[str, Agent]) -> None:
    run = await run_agent(agents["assistant"], "two tools")
    assert shape(run) == (
        "turn_start say(m1) tool(c1 calculate ok) tool(c2 report ok) say(m2) done(completed)"
    )
    run = await run_agent(agents["script"], json.dumps(SCRIPT), **SCRIPT_ANSWERS)
    assert shape(run) == (
        "turn_start reason(m1) tool(c1 append_note ok) tool(c2 sleep ok) "
        "tool(c3 always_fails failed TOOL_ERROR) say(m2) state(k) state(-gone) custom(acme.x) "
        "notice(ODD) tool(c4 ask ok) suspended(input_required c4) "
        "turn_start(2) say(m3) tool(c5 pick_colour ok) suspended(client_tool c5) "
        "turn_start(3) say(m4) done(completed)"
    )
