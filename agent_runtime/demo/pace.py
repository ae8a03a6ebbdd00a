"""Streaming text word by word. Knows nothing of what is said."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator

from agent_runtime.context import TurnContext

MAX_WORDS_PER_MESSAGE = 10_000
"""A longer text goes on in a further message: one message has an upper size."""

_WORD = re.compile(r"\s*\S+\s*")


def words_of(text: str) -> list[str]:
    """Cut text into words that, joined, are the text again."""
    return _WORD.findall(text) or ([text] if text else [])


async def say_words(ctx: TurnContext, words: Iterable[str], word_seconds: float) -> None:
    """Say words one by one with a pause after each. A replay passes over what is recorded."""
    for batch in _batches(words):
        async with ctx.message() as message:
            if message.recorded is None:
                await _stream(message.say, batch, word_seconds)


async def reason_words(ctx: TurnContext, words: Iterable[str], word_seconds: float) -> None:
    """Disclose reasoning word by word, as a message without text."""
    async with ctx.message() as message:
        if message.recorded is None:
            await _stream(message.reason, words, word_seconds)


async def say_slowly(ctx: TurnContext, text: str, word_seconds: float) -> None:
    """Say a text word by word."""
    await say_words(ctx, words_of(text), word_seconds)


async def _stream(
    say: Callable[[str], Awaitable[None]], words: Iterable[str], word_seconds: float
) -> None:
    for word in words:
        await say(word)
        # Also without a pause the loop must turn, or a long text would hold up everybody.
        await asyncio.sleep(word_seconds)


def _batches(words: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for word in words:
        batch.append(word)
        if len(batch) == MAX_WORDS_PER_MESSAGE:
            yield batch
            batch = []
    if batch:
        yield batch
