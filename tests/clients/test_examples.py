"""The examples of docs/front-end.md that need no page, as they stand: kits under node, and the shell.

What an example takes for granted is given to it, and nothing else: an id, a component to call a hook in, and a
page's habit of asking its own origin.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tests.support.examples import examples, inline_example
from tests.support.live_edge import LiveEdge, live_edge
from tests.support.node import find_package
from tests.support.scripted_runtime import ScriptedRuntime, completed, emit, finished, text
from tests.support.sse import parse

pytestmark = pytest.mark.realtime

FOLDER = Path(__file__).parent
ID = "abcdefghijklmnop"
COUNT = "count to 50"
TOLD = ("turn_start", "token", "message", "done")
PATIENCE_SECONDS = 55.0
"""Longer than node takes to start on a machine that is busy with something else."""
GIVEN = """
const ask = fetch;
globalThis.fetch = (to, init) => ask(new URL(to, process.argv[1]), init);
const print = (value) => console.log(JSON.stringify(value));
const until = async (holds) => { while (!holds()) await new Promise(setImmediate); };
"""
REACT = """
import { createElement, useSyncExternalStore } from "react";
import { create } from "react-test-renderer";
"""


def counter() -> ScriptedRuntime:
    runtime = ScriptedRuntime()
    words = [text("m1", f"{number} ") for number in range(1, 31)]
    runtime.play(emit(*words, completed("m1", "1 2 3"), finished()))
    return runtime


async def output_of(*command: str) -> str:
    """Run a command to its end, which must be a good one, and return what it said."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=FOLDER, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            said, complaints = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complaints.decode()
    return said.decode()


async def run(edge: LiveEdge, package: str, *code: str) -> list[Any]:
    """Run a module, and return what it printed."""
    node, module = find_package(package), "\n".join((GIVEN, *code, "process.exit(0);"))
    origin = f"http://127.0.0.1:{edge.port}"
    said = await output_of(node, "--input-type=module", "--eval", module, origin)
    return [json.loads(line) for line in said.splitlines()]


def in_component(hook: str, then: str) -> str:
    """Return a module that calls a hook where hooks are called, its imports where imports are."""
    imports, _, body = hook.rpartition('";\n\n')
    head = f'{imports}";' if imports else ""
    return f"{REACT}{head}\nfunction Page() {{\n{body}\n{then}\nreturn null;\n}}\ncreate(createElement(Page));"


async def test_use_chat() -> None:
    (hook,) = examples("useChat")
    stop = inline_example('fetch("/v1/ai-sdk')
    then = "globalThis.shown = { messages, sendMessage, status };"
    code = (
        f'const id = "{ID}";',
        in_component(hook, then),
        "await until(() => globalThis.shown);",
        f'await shown.sendMessage({{ text: "{COUNT}" }});',
        'await until(() => shown.status === "ready" && shown.messages.length === 2);',
        "print(shown);",
        f"print(await (await {stop}).json());",
    )
    async with live_edge(counter()) as edge:
        shown, stopped = await run(edge, "@ai-sdk/react", *code)
    assert stopped == {"state": "done"}
    assert shown["status"] == "ready"
    assert [m["role"] for m in shown["messages"]] == ["user", "assistant"]
    assert "1 2 3" in str(shown["messages"][1]["parts"])


async def test_the_binding_for_react() -> None:
    library = (ROOT / "edge" / "static" / "unbroken" / "unbroken.js").as_uri()
    binding = inline_example("useSyncExternalStore")
    code = (
        f'import {{ open }} from "{library}";',
        "const session = open({ baseUrl: process.argv[1] });",
        in_component(f"const view = {binding};", "globalThis.shown = view;"),
        f'await session.send("{COUNT}");',
        'await until(() => shown.turns[0]?.state === "finished");',
        "print(shown);",
    )
    async with live_edge(counter()) as edge:
        (shown,) = await run(edge, "@ai-sdk/react", *code)
    assert "1 2 3" in json.dumps(shown["turns"][0]["items"])


async def test_http_agent() -> None:
    run_agent, come_back = examples("AG-UI HttpAgent")
    stop = inline_example('fetch("/v1/ag-ui')
    code = (
        f'const threadId = "{ID}";',
        run_agent,
        "print(agent.messages);",
        come_back,
        "print(back.messages);",
        f"print(await (await {stop}).json());",
    )
    async with live_edge(counter()) as edge:
        ran, told, stopped = await run(edge, "@ag-ui/client", *code)
    assert [(m["role"], m["content"]) for m in ran] == [("user", COUNT), ("assistant", "1 2 3")]
    assert told == ran
    assert stopped == {"stopped": False}


async def test_curl() -> None:
    shell = shutil.which("sh")
    if shell is None or shutil.which("curl") is None:
        pytest.skip("NOT RUN: no curl on this machine, or no shell to call it")
    (script,) = examples("curl")
    async with live_edge(counter()) as edge:
        here = script.replace("localhost:8080", f"localhost:{edge.port}")
        assert here.count(str(edge.port)) == 4
        said = await output_of(shell, "-ec", here)
    _, _, streams = said.partition("}")  # what the POST answered
    told = [m for m in parse(streams.encode()) if m.type in TOLD]
    ids = [message.last_event_id for message in told]
    end = ids.index("1-33") + 1
    assert (told[end - 1].type, told[-1].type) == ("done", "done")
    assert ids[end:] == ids[20:end]  # gone on after 1-20
