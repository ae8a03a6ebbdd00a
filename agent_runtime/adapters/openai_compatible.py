"""A chat model behind an OpenAI-compatible API as an agent: streaming, tools, replay.

Needs the extra ``openai``. Serve it with
``AGENT_RUNTIME_AGENTS=agent_runtime.adapters.openai_compatible:agent`` and:

``OPENAI_MODEL``     the model's name; required.
``OPENAI_BASE_URL``  where the API is; OpenAI's own by default.
``OPENAI_API_KEY``   a local server usually needs none.
``OPENAI_TOOLS``     ``module:attribute`` of a list of tools.
``OPENAI_SYSTEM``    the system prompt.

Every answer of the model is journaled with its message, its tool calls as provider state, so that a
replay asks the model nothing again. A stream that breaks off is withdrawn and asked for anew: what
was cut is never used, least of all half of a tool's arguments. Knows nothing of the wire.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import openai

from agent_runtime.agent import Agent
from agent_runtime.agent import agent as make_agent
from agent_runtime.context import TurnContext
from agent_runtime.errors import TokenLimitReached, ToolFailed, TurnFailed
from agent_runtime.events import MessageStatus, Outcome, Usage
from agent_runtime.limits import TooLarge, to_json
from agent_runtime.messages import Message
from agent_runtime.prompt import Prompt, opening_prompt
from agent_runtime.tools import Tool

MAX_TRIES = 3
"""How often one answer is asked for before the turn fails."""
RETRY_SECONDS = 0.5
"""Pause before the second try; doubled for each further one."""

_RETRYABLE_STATUS = {408, 409, 429}


class StreamCut(Exception):
    """The stream ended before the model said that its answer was whole."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A tool call as the model asked for it; ``arguments`` is JSON text, and may not be."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole answer of the model."""

    message_id: str
    text: str
    calls: tuple[ModelCall, ...]


class ChatAgent:
    """The loop: the model answers, its tools run, the model answers, until it asks for none."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        model: str,
        *,
        tools: Iterable[Tool] = (),
        system: str = "",
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._client = client
        self._model = model
        self._system = system
        self._retry_seconds = retry_seconds
        self._tools = tuple(tools)

    def as_agent(self, name: str = "chat") -> Agent:
        """Return what a runtime can serve."""
        return make_agent(name=name, tools=self._tools)(self.run)

    async def run(self, ctx: TurnContext) -> None:
        """Answer one turn."""
        prompt = opening_prompt(self._system, ctx.history, ctx.input)
        while True:
            answer = await self._answer(ctx, prompt)
            if not answer.calls:
                return
            prompt.append(_assistant(answer))
            results = await asyncio.gather(
                *(_call(ctx, call, answer.message_id) for call in answer.calls)
            )
            for call, result in zip(answer.calls, results, strict=True):
                prompt.append({"role": "tool", "tool_call_id": call.id, "content": result})

    async def _answer(self, ctx: TurnContext, prompt: Prompt) -> Answer:
        """Return the next answer: the journal's, or the model's after at most ``MAX_TRIES``."""
        for tries in range(1, MAX_TRIES + 1):
            message = ctx.message()
            answer = await self._try(ctx, message, prompt)
            if answer is not None:
                return answer
            if tries < MAX_TRIES:
                await ctx.notice(
                    "MODEL_CALL_FAILED", user_message="The model failed; trying again."
                )
                if message.recorded is None:
                    await asyncio.sleep(self._retry_seconds * 2 ** (tries - 1))
        raise TurnFailed(
            "MODEL_UNAVAILABLE", user_message="The model cannot be reached.", retryable=True
        )

    async def _try(self, ctx: TurnContext, message: Message, prompt: Prompt) -> Answer | None:
        """Return one try's answer, or ``None`` if it failed and may be made again."""
        async with message:
            if message.recorded is not None:
                whole = message.recorded.status is MessageStatus.COMPLETE
                return _recorded(message) if whole else None
            ctx.begin_model_call()
            message.usage = Usage(model_calls=1)
            try:
                return await self._stream(message, prompt)
            except (openai.APIError, StreamCut) as error:
                message.discard()
                if not _may_retry(error):
                    # The error's text may quote the prompt.
                    raise TurnFailed(
                        "MODEL_ERROR", user_message="The model refused the request."
                    ) from None
        return None

    async def _stream(self, message: Message, prompt: Prompt) -> Answer:
        """Stream one answer into the message. Raises ``StreamCut`` unless it came to its end."""
        collector = _Collector()
        tools = [_described(tool) for tool in self._tools] or openai.omit
        # The prompt is plain dictionaries of the shape that the client's types spell out.
        create: Any = self._client.chat.completions.create
        stream = await create(
            model=self._model,
            messages=prompt,
            tools=tools,
            stream=True,
            stream_options={"include_usage": True},
        )
        async with stream:
            async for chunk in _chunks(stream):
                await collector.take(chunk, message)
        if collector.usage is not None:
            message.usage = collector.usage
        return collector.finish(message)


async def _chunks(stream: Any) -> AsyncIterator[Any]:
    """Yield the chunks of a stream. Raises ``StreamCut`` or an ``openai.APIError`` if it breaks."""
    chunks = aiter(stream)
    while True:
        # Boundary: once a stream runs, a failure of its transport comes through as the exception
        # of whatever HTTP library this release of the client stands on.
        try:
            chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except openai.APIError:
            raise
        except Exception as error:  # noqa: BLE001
            raise StreamCut(type(error).__name__) from None
        yield chunk


class _Collector:
    """Puts one streamed answer together. Calls are used only once the whole answer is there."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish_reason: str | None = None

    async def take(self, chunk: Any, message: Message) -> None:
        if chunk.usage is not None:
            self.usage = _usage(chunk.usage)
        for choice in chunk.choices[:1]:
            self._finish_reason = choice.finish_reason or self._finish_reason
            # Not in the standard, but what most servers of reasoning models send.
            if reasoning := getattr(choice.delta, "reasoning_content", None):
                await message.reason(reasoning)
            if text := choice.delta.content or choice.delta.refusal:
                self._text.append(text)
                await message.say(text)
            for part in choice.delta.tool_calls or ():
                self._add(part)

    def finish(self, message: Message) -> Answer:
        """Return the whole answer, journaled with its message."""
        if self._finish_reason is None:
            raise StreamCut
        if self._finish_reason == "length":
            raise TokenLimitReached
        if self._finish_reason == "content_filter":
            raise TurnFailed("CONTENT_FILTER", user_message="The model's answer was withheld.")
        calls = tuple(ModelCall(**call) for _, call in sorted(self._calls.items()))
        try:
            message.keep(_state(calls))
        except TooLarge:
            raise TurnFailed("MODEL_ANSWER_TOO_LARGE") from None
        return Answer(message.message_id, "".join(self._text), calls)

    def _add(self, part: Any) -> None:
        call = self._calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
        call["id"] = part.id or call["id"] or f"call_{part.index}"
        if part.function is not None:
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""


async def _call(ctx: TurnContext, call: ModelCall, message_id: str) -> str:
    """Run one call and return what the model is told of it."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return to_json({"error": "the arguments are not a JSON object"})
    try:
        return to_json(await ctx.call_tool(call.name, arguments, message_id=message_id))
    except ToolFailed as failure:
        told = {"error": failure.reason, "detail": failure.problem.user_message}
        if failure.outcome is Outcome.UNKNOWN:
            told["detail"] = "It may have run. Do not repeat it without asking the user."
        elif failure.reason == "INVALID_ARGUMENTS":
            told["detail"] = failure.problem.message
        return to_json(told)


def _recorded(message: Message) -> Answer:
    assert message.recorded is not None
    state = message.recorded.provider_state
    calls = tuple(ModelCall(**call) for call in json.loads(state)["calls"]) if state else ()
    return Answer(message.message_id, message.recorded.text, calls)


def _state(calls: tuple[ModelCall, ...]) -> bytes:
    if not calls:
        return b""
    kept = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
    return to_json({"calls": kept}).encode()


def _assistant(answer: Answer) -> dict[str, Any]:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments or "{}"},
        }
        for call in answer.calls
    ]
    return {"role": "assistant", "content": answer.text or None, "tool_calls": calls}


def _described(tool: Tool) -> dict[str, Any]:
    described = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": described}


def _usage(usage: Any) -> Usage:
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cached_input_tokens=(prompt and prompt.cached_tokens) or 0,
        reasoning_tokens=(completion and completion.reasoning_tokens) or 0,
        model_calls=1,
    )


def _may_retry(error: Exception) -> bool:
    """A request that was refused as it stands would be refused again."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code >= 500 or error.status_code in _RETRYABLE_STATUS
    return True


def from_environment(environment: Mapping[str, str]) -> Agent:
    """Make the agent that the ``OPENAI_*`` variables describe.

    Raises:
        ValueError: no model is named, or the tools cannot be found.
    """
    model = environment.get("OPENAI_MODEL")
    if not model:
        raise ValueError("OPENAI_MODEL names no model")
    client = openai.AsyncOpenAI(
        api_key=environment.get("OPENAI_API_KEY") or "none",
        base_url=environment.get("OPENAI_BASE_URL") or None,
        # Retries are the agent's: only it can take back what was shown.
        max_retries=0,
    )
    tools = _load_tools(environment.get("OPENAI_TOOLS", ""))
    return ChatAgent(
        client, model, tools=tools, system=environment.get("OPENAI_SYSTEM", "")
    ).as_agent()


def _load_tools(place: str) -> list[Tool]:
    if not place:
        return []
    module_name, _, attribute = place.partition(":")
    tools = getattr(importlib.import_module(module_name), attribute, None)
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, Tool) for tool in tools):
        raise ValueError("OPENAI_TOOLS: must be module:attribute of a list of tools")
    return list(tools)


def __getattr__(name: str) -> Agent:
    """Make ``agent`` when it is asked for: importing this module needs no configuration."""
    if name == "agent":
        return from_environment(os.environ)
    raise AttributeError(name)
