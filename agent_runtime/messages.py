"""The messages of one attempt: streamed as deltas, restated whole when they are settled.

Knows nothing of tools, streams or the wire.

Invariants:
- Ids are given in the order in which the messages are made, so a replay gives them again.
- A message that the journal holds is never written again; text for it is swallowed.
- An opened message is settled once: COMPLETE, INCOMPLETE or DISCARDED.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from agent_runtime.events import (
    MessageCompleted,
    MessageStatus,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from agent_runtime.limits import (
    MAX_SHOWN_BYTES,
    TooLarge,
    base64_bytes,
    clean_text,
    shown_bytes,
    split_text,
)
from agent_runtime.outbox import Emitter


class Messages:
    """Numbers and keeps the messages of one attempt."""

    def __init__(
        self, emitter: Emitter, recorded: Mapping[str, MessageCompleted], used: Usage
    ) -> None:
        """``recorded`` holds what the journal has of this turn, ``used`` its model usage so far."""
        self.emitter = emitter
        self.usage = used
        self.final_id = ""
        """The last whole message with text: the one that answers the user."""
        self._recorded = recorded
        self._count = 0
        self._open: dict[str, Message] = {}

    def new(self) -> Message:
        """Number a message."""
        self._count += 1
        message_id = f"m{self._count}"
        return Message(self, message_id, self._recorded.get(message_id))

    def opened(self, message: Message) -> None:
        """Remember a message that must be settled."""
        self._open[message.message_id] = message

    def settled(self, completed: MessageCompleted, *, live: bool) -> None:
        """Take in a message's final form, and emit it if the journal does not have it."""
        self._open.pop(completed.message_id, None)
        if completed.status is MessageStatus.COMPLETE and completed.text:
            self.final_id = completed.message_id
        if live:
            self.usage += completed.usage or Usage()
            self.emitter.emit(completed)

    def settle_all(self) -> None:
        """Settle what is still open as cut short. The turn is about to finish."""
        for message in list(self._open.values()):
            message.settle(MessageStatus.INCOMPLETE)


class Message:
    """One message of the agent, an async context manager. Leaving the block settles it.

    An exception or a cancellation inside the block settles it as INCOMPLETE and goes on.
    ``recorded`` is what the journal holds of it: an agent with a model uses that, and does not ask
    the model again.
    """

    def __init__(
        self, messages: Messages, message_id: str, recorded: MessageCompleted | None
    ) -> None:
        self.message_id = message_id
        self.recorded = recorded
        self.usage: Usage | None = None
        """Model usage of the call that produced the message."""
        self._provider_state = b""
        self._messages = messages
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._size_bytes = 0
        self._discarded = False
        self._open = False

    async def __aenter__(self) -> Self:
        self._open = True
        self._messages.opened(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._discarded:
            self.settle(MessageStatus.DISCARDED)
        else:
            self.settle(MessageStatus.COMPLETE if error is None else MessageStatus.INCOMPLETE)

    async def say(self, text: str) -> None:
        """Append text. Waits while the edge reads more slowly than this is called.

        Raises:
            TooLarge: the message would hold more than ``MAX_SHOWN_BYTES``; begin another one.
        """
        for piece in split_text(self._admit(text)):
            await self._messages.emitter.room()
            self._text.append(piece)
            self._messages.emitter.emit(TextDelta(self.message_id, piece))

    async def reason(self, text: str) -> None:
        """Append reasoning that may be disclosed. Otherwise as ``say``."""
        for piece in split_text(self._admit(text)):
            await self._messages.emitter.room()
            self._reasoning.append(piece)
            self._messages.emitter.emit(ReasoningDelta(self.message_id, piece))

    def keep(self, provider_state: bytes) -> None:
        """Journal opaque state with the message; ``recorded`` hands it back. It is never shown.

        Raises:
            TooLarge: the message would hold more than ``MAX_SHOWN_BYTES``.
        """
        self._charge(base64_bytes(provider_state) - base64_bytes(self._provider_state))
        self._provider_state = provider_state

    def discard(self) -> None:
        """Withdraw the message: readers remove what they showed of it. Leave the block next."""
        self._discarded = True

    def settle(self, status: MessageStatus) -> None:
        """Give the message its final form, once."""
        if not self._open:
            return
        self._open = False
        if self.recorded is not None:
            self._messages.settled(self.recorded, live=False)
            return
        discarded = status is MessageStatus.DISCARDED
        completed = MessageCompleted(
            message_id=self.message_id,
            text="" if discarded else "".join(self._text),
            reasoning="" if discarded else "".join(self._reasoning),
            status=status,
            usage=self.usage,
            provider_state=self._provider_state,
        )
        self._messages.settled(completed, live=True)

    def _admit(self, text: str) -> str:
        """Return what is to be written: nothing, if the journal holds the message already."""
        if not self._open:
            raise RuntimeError("write inside `async with ctx.message() as m:` only")
        if self.recorded is not None:
            return ""
        text = clean_text(text)
        self._charge(shown_bytes(text))
        return text

    def _charge(self, size_bytes: int) -> None:
        if self._size_bytes + size_bytes > MAX_SHOWN_BYTES:
            raise TooLarge("message", self._size_bytes + size_bytes, MAX_SHOWN_BYTES)
        self._size_bytes += size_bytes
