"""A burst of one session's events on Firestore's official emulator: no contention, no document too large."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio
import pytest

from edge.core.event import TERMINAL, Event
from edge.sessions.registry import Registry
from edge.sessions.settings import SessionSettings
from tests.support.house import UID, Client, CountingTelemetry, frame, log_events, request
from tests.support.journal_records import ManualClock
from tests.support.journal_stores import FirestoreStore
from tests.support.runtime_double import Attempt, RuntimeDouble

pytestmark = pytest.mark.emulator

DOCUMENT_LIMIT_BYTES = 1_048_576
"""Firestore's own; the emulator has it too."""
DELTAS = 3_000
LARGE, LARGE_BYTES = 4, 400_000


class Writes(grpc.aio.UnaryUnaryClientInterceptor):
    """Remembers every document that was written, and every status that was answered."""

    def __init__(self) -> None:
        self.records: list[str] = []
        self.heads = 0
        self.largest_bytes = 0
        self.statuses: set[int] = set()

    async def intercept_unary_unary(
        self,
        continuation: Callable[[Any, Any], Awaitable[Any]],
        client_call_details: grpc.aio.ClientCallDetails,
        request: Any,
    ) -> Any:
        call = await continuation(client_call_details, request)
        self.statuses.add((await call.code()).value[0])
        method: Any = client_call_details.method  # typed as text, and bytes in fact
        if method.endswith((b"/BatchWrite", b"/Commit")):
            for write in raw(request).writes:
                self._note(write.update)
            answer = await call
            self.statuses |= {status.code for status in getattr(answer, "status", ())}
        return call

    def _note(self, document: Any) -> None:
        self.largest_bytes = max(self.largest_bytes, document.ByteSize())
        if "/log/" in document.name:
            self.records.append(document.name)
        elif "/turns/" not in document.name:
            self.heads += 1


def raw(message: Any) -> Any:
    """Return the protobuf message inside of the library's own wrapper, if it has one."""
    unwrap = getattr(type(message), "pb", None)
    return message if unwrap is None else unwrap(message)


async def burst(attempt: Attempt) -> None:
    """Say everything as fast as it can be taken, with a few events as large as may be."""
    for n in range(DELTAS):
        attempt.text("m1", f"w{n} ")
        if n % 100 == 0:
            await asyncio.sleep(0)
    for _ in range(LARGE):  # together they are more than a document holds
        attempt.text("m1", "x" * LARGE_BYTES)


@pytest.mark.proves("S87")
async def test_a_burst_of_deltas_is_few_documents_in_order_and_none_is_written_twice(
    firestore: FirestoreStore,
) -> None:
    writes, clock = Writes(), ManualClock()
    journal = firestore.open_with(writes, clock=clock)
    registry = Registry(
        journal=journal,
        runtime=RuntimeDouble(burst),
        clock=clock,
        telemetry=CountingTelemetry(),
        settings=SessionSettings(),
        encode=frame,
        chance=random.Random(1),
        writer="edge-1",
    )
    session_id = await registry.create_session(UID)
    async with asyncio.timeout(60):
        await registry.start_turn(UID, session_id, request())
        client = Client()
        await client.watch(registry, session_id)
    stored: list[Event] = await log_events(firestore.open_with(), session_id)
    assert client.view == stored
    assert stored[-1].type in TERMINAL
    assert [e.type for e in stored].count("token") == DELTAS + LARGE
    assert writes.statuses == {0}, "something was refused, aborted or had to be tried again"
    assert len(writes.records) < DELTAS / 20
    assert writes.records == sorted(set(writes.records)), "ids are padded, so names sort as slots"
    assert writes.heads < 10
    assert LARGE_BYTES < writes.largest_bytes < DOCUMENT_LIMIT_BYTES
    await registry.close()
