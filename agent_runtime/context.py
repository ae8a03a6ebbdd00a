"""What an agent sees of its turn, and everything it can do in it.

An agent is replayed: after a crash, a suspension or a deploy it runs again from its beginning with
the same input, and every message, call and state change that the journal holds is passed over or
answered from there. So an agent must be deterministic: it takes its randomness from ``ctx.random``,
acts on the world only in tools, and does not let timing decide the order of its calls. Several calls
at once (``asyncio.gather``) are fine; branches that each make several calls in a row are not, since
the calls would be numbered by chance.

Knows nothing of streams or the wire.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any

from agent_runtime.calls import Calls
from agent_runtime.errors import ModelCallLimitReached, fit_problem
from agent_runtime.events import (
    CustomEvent,
    ErrorReported,
    Part,
    Payload,
    Problem,
    StateChange,
    StateDelta,
    TurnRef,
)
from agent_runtime.ledger import ASK_TOOL, HistoryItem, Ledger, joined_text
from agent_runtime.limits import bounded_json, bounded_name, clean_text
from agent_runtime.messages import Message, Messages
from agent_runtime.outbox import Emitter
from agent_runtime.tools import Tool


class TurnContext:
    """One turn, as its agent sees it."""

    def __init__(
        self,
        turn: TurnRef,
        ledger: Ledger,
        *,
        emitter: Emitter,
        messages: Messages,
        calls: Calls,
        tools: Mapping[str, Tool],
        max_model_calls: int,
        limit_reached: Callable[[], None],
    ) -> None:
        self.turn = turn
        self.tools = tools
        """The agent's tools by name."""
        self.random = random.Random(f"{turn.session_id}/{turn.turn_id}")
        """Chance that is the same in every attempt of the turn."""
        self._ledger = ledger
        self._emitter = emitter
        self._messages = messages
        self._calls = calls
        self._state = {key: json.loads(text) for key, text in ledger.state.items()}
        self._steps: Counter[str] = Counter()
        self._model_calls_left = max_model_calls - ledger.usage.model_calls
        self._limit_reached = limit_reached

    @property
    def input(self) -> tuple[Part, ...]:
        """What the user sent."""
        return self._ledger.input

    @property
    def input_text(self) -> str:
        """The text parts of the input, joined by line breaks."""
        return joined_text(self._ledger.input)

    @property
    def history(self) -> tuple[HistoryItem, ...]:
        """Messages and tool calls of the earlier turns, oldest first."""
        return self._ledger.history

    @property
    def state(self) -> Mapping[str, Any]:
        """The session's state, as it is at this point of the turn."""
        return MappingProxyType(self._state)

    def message(self) -> Message:
        """Begin a message: ``async with ctx.message() as m: await m.say("Hel")``."""
        return self._messages.new()

    def say(self, text: str) -> Coroutine[Any, Any, None]:
        """Say a whole message."""
        return _write(self.message(), text, "")

    def reason(self, text: str) -> Coroutine[Any, Any, None]:
        """Disclose a whole piece of reasoning, as a message without text."""
        return _write(self.message(), "", text)

    def call_tool(
        self, tool: Tool | str, arguments: Mapping[str, object], *, message_id: str = ""
    ) -> Coroutine[Any, Any, Any]:
        """Call one of the agent's tools and wait for its result, a JSON value.

        Args:
            tool: the tool or its name.
            arguments: a JSON object that fits the tool's signature.
            message_id: the message that asked for the call, if there is one.

        Raises:
            ToolFailed: it failed. ``ToolOutcomeUnknown``: it may have run and must not be repeated.
                ``ToolNotExecuted``: it did not run.
            TypeError, ValueError: the arguments have no JSON form.
        """
        return self._calls.call(tool if isinstance(tool, str) else tool.name, arguments, message_id)

    def ask(
        self, prompt: str, schema: Mapping[str, object] | None = None
    ) -> Coroutine[Any, Any, Any]:
        """Ask a person and return the answer; the turn is suspended until it comes.

        Args:
            prompt: the question.
            schema: JSON Schema of the answer, if it has one.

        Raises:
            ToolNotExecuted: the person declined to answer.
        """
        asked: dict[str, object] = {"prompt": clean_text(prompt)}
        if schema is not None:
            asked["schema"] = dict(schema)
        return self._calls.call(ASK_TOOL, asked, "")

    async def set_state(self, key: str, value: object) -> None:
        """Set a top-level key (at most 1 KiB) of the session's state to a JSON value of at most 64 KiB.

        Raises:
            TooLarge: it is larger.
            TypeError, ValueError: the value has no JSON form.
        """
        await self._change(key, bounded_json(value, what="state value"))

    async def remove_state(self, key: str) -> None:
        """Remove a top-level key of the session's state."""
        await self._change(key, None)

    async def custom(self, name: str, value: object) -> None:
        """Emit an event of the application's own; ``name`` is namespaced, as in ``acme.citation``."""
        event = CustomEvent(
            bounded_name(name, what="name of a custom event"),
            bounded_json(value, what="custom event"),
        )
        await self._emit_once("custom", self._ledger.turn.customs, event)

    async def notice(
        self, reason: str, *, user_message: str = "", message: str = "", retryable: bool = True
    ) -> None:
        """Report that something failed and the turn goes on. ``message`` is for developers only."""
        problem = Problem(
            reason=reason, message=message, user_message=user_message, retryable=retryable
        )
        reported = ErrorReported(problem=fit_problem(problem))
        await self._emit_once("notice", self._ledger.turn.notices, reported)

    def begin_model_call(self) -> None:
        """Count a model call about to be made; not needed for a recorded one.

        Raises:
            ModelCallLimitReached: the turn may make no more. It ends, whatever the agent does.
        """
        self._model_calls_left -= 1
        if self._model_calls_left < 0:
            self._limit_reached()
            raise ModelCallLimitReached

    async def _change(self, key: str, value_json: str | None) -> None:
        """Steps are counted for each key, so that merged neighbours in the journal do no harm."""
        key = bounded_name(key, what="state key")
        recorded = self._ledger.turn.changes.get(key, [])
        step = self._steps[f"state {key}"]
        if step < len(recorded):
            value_json = recorded[step]
        if value_json is None:
            self._state.pop(key, None)
        else:
            self._state[key] = json.loads(value_json)
        delta = StateDelta((StateChange(key, value_json),))
        await self._emit_once(f"state {key}", len(recorded), delta)

    async def _emit_once(self, kind: str, recorded: int, payload: Payload) -> None:
        """Emit the next step of a kind, unless the journal holds that many of them already."""
        self._steps[kind] += 1
        if self._steps[kind] > recorded:
            await self._emitter.room()
            self._emitter.emit(payload)


async def _write(message: Message, text: str, reasoning: str) -> None:
    async with message:
        await message.reason(reasoning)
        await message.say(text)
