"""Puts the single creates of many sessions that are ready together into one ``BatchWrite``.

One RPC per session and flush costs a millisecond of CPU; a thousand sessions cannot afford it. Each
create in a batch succeeds or fails by itself. Nothing waits to be joined: what was asked for in one
turn of the event loop leaves at its end.

Knows nothing of what the documents hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edge.core.errors import EdgeError
from edge.journal.firestore_calls import Calls
from edge.journal.rules import APPEND_LIMIT_BYTES
from edge.ports import AppendRefused, AppendUnknown

BATCH_LIMIT_WRITES = 100
"""A lost answer leaves all of them in doubt, and each must then be read."""


@dataclass(frozen=True, slots=True)
class _Create:
    write: Any
    done: asyncio.Future[None]


class CreateBatches:
    """Sends creates in batches; a caller that is cancelled takes no other one along."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._ready: list[_Create] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def create(self, write: Any) -> None:
        """Create one document. Raises as ``Calls.create``."""
        loop = asyncio.get_running_loop()
        if not self._ready:
            loop.call_soon(self._send_ready)
        create = _Create(write, loop.create_future())
        self._ready.append(create)
        await create.done

    async def close(self) -> None:
        """Wait for what is under way; no longer than its deadline."""
        self._send_ready()
        while self._sending:
            await asyncio.wait(self._sending)

    def _send_ready(self) -> None:
        ready, self._ready = self._ready, []
        for batch in _split([create for create in ready if not create.done.cancelled()]):
            task = asyncio.create_task(self._send(batch))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, batch: Sequence[_Create]) -> None:
        try:
            outcomes = await self._outcomes(batch)
            for create, outcome in zip(batch, outcomes, strict=True):
                _settle(create.done, outcome)
        finally:
            # Whatever befell this task, nobody is left waiting for it.
            for create in batch:
                _settle(create.done, AppendUnknown("no answer"))

    async def _outcomes(self, batch: Sequence[_Create]) -> Sequence[EdgeError | None]:
        try:
            return await self._calls.create_each([create.write for create in batch])
        except AppendUnknown as error:
            return [AppendUnknown(str(error)) for _ in batch]
        except AppendRefused:
            # One bad document spoils the request: the others must not pay for it.
            return [await self._create_alone(create) for create in batch]

    async def _create_alone(self, create: _Create) -> EdgeError | None:
        try:
            await self._calls.create([create.write])
        except EdgeError as error:
            return error
        return None


def _split(creates: Sequence[_Create]) -> Iterator[Sequence[_Create]]:
    """Cut where a request would be too large, or would name a document twice."""
    batch: list[_Create] = []
    names: set[str] = set()
    size = 0
    for create in creates:
        name, weight = create.write.update.name, create.write.ByteSize()
        full = len(batch) == BATCH_LIMIT_WRITES or size + weight > APPEND_LIMIT_BYTES
        if batch and (full or name in names):
            yield batch
            batch, names, size = [], set(), 0
        batch.append(create)
        names.add(name)
        size += weight
    if batch:
        yield batch


def _settle(done: asyncio.Future[None], outcome: EdgeError | None) -> None:
    if done.done():  # cancelled, or settled before
        return
    if outcome is None:
        done.set_result(None)
    else:
        done.set_exception(outcome)
