"""A scene: runtimes, edges and a journal as processes, in the two shapes that they are deployed in.

``own`` gives each edge a runtime of its own, as two containers of one Cloud Run service;
``shared`` lets several edges use one runtime. Knows nothing of what is tested.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from edge.core.errors import JournalUnavailable
from edge.core.event import TERMINAL, Event
from edge.core.log import AnyRecord, Events
from edge.journal.firestore import FirestoreJournal
from edge.journal.sqlite import SqliteJournal
from edge.ports import Journal
from tests.faults.client import Client
from tests.support.checker import violations
from tests.support.history import History
from tests.support.http_client import Answer, post
from tests.support.processes import POLL_SECONDS, Child, Crew
from tests.support.tcp_proxy import TcpProxy

Shape = Literal["own", "shared"]
Step = Mapping[str, Any]

QUICK = {
    "EDGE_TTL_SECONDS": "4.5",
    "EDGE_HOLD_TIMEOUT_SECONDS": "1.4",
    "EDGE_PING_SECONDS": "1",
    "EDGE_DRAIN_SECONDS": "4",
    "EDGE_START_WAIT_SECONDS": "30",
}
"""Timings as short as their relations allow, so that a take-over takes seconds."""
AGENTS = "agent_runtime.demo:script,agent_runtime.demo:assistant"

READ_SECONDS = 60.0
"""Longer than any edge is stopped in the middle of a write."""


class WallClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Store:
    """Where the edges keep their journal, and how a test reads it."""

    path: Path | None = None
    emulator: str = ""
    project: str = ""

    def variables(self) -> dict[str, str]:
        """Return the edge's settings for this store."""
        if self.path is not None:
            return {"EDGE_JOURNAL": f"sqlite:{self.path}"}
        return {
            "EDGE_JOURNAL": "firestore:",
            "GOOGLE_CLOUD_PROJECT": self.project,
            "FIRESTORE_EMULATOR_HOST": self.emulator,
        }

    async def records(self, session_id: str) -> list[AnyRecord]:
        """Return a session's whole log, once the store can be read."""
        deadline = monotonic() + READ_SECONDS
        while True:
            try:
                return await self._read(session_id)
            except (
                JournalUnavailable
            ):  # a store that is busy, or held by who was stopped in a write
                assert monotonic() < deadline, "the store cannot be read"
                await asyncio.sleep(POLL_SECONDS)

    async def _read(self, session_id: str) -> list[AnyRecord]:
        journal = await self._open()
        try:
            return list((await journal.read(session_id, 0, 100_000)).records)
        finally:
            await journal.close()

    async def _open(self) -> Journal:
        if self.path is not None:
            return await SqliteJournal.open(self.path, WallClock())
        return FirestoreJournal.connect(
            WallClock(), project=self.project, emulator_host=self.emulator
        )


@dataclass(slots=True)
class Node:
    """An edge, the runtime it uses, and the wire between them if there is one to be cut."""

    edge: Child
    port: int
    runtime: Child
    runtime_port: int
    wire: TcpProxy | None = None
    store_wire: TcpProxy | None = None

    def kill(self, shape: Shape) -> None:
        """Kill the edge at once, and its own runtime with it: they are one container."""
        self.edge.kill()
        if shape == "own":
            self.runtime.kill()


@dataclass(slots=True)
class Scene:
    """Everything of one test; closed by the fixture that made it."""

    crew: Crew
    store: Store
    nodes: list[Node] = field(default_factory=list)
    _wires: list[TcpProxy] = field(default_factory=list)
    _keys: int = 0

    @property
    def ports(self) -> list[int]:
        return [node.port for node in self.nodes]

    @property
    def shape(self) -> Shape:
        """The shape that goes with the store, so that two scenes show both of each."""
        return "shared" if self.store.emulator else "own"

    @property
    def ledger(self) -> Path:
        return self.crew.folder / "notes.jsonl"

    async def set(
        self, count: int = 2, *, shape: Shape = "own", wired: bool = False, **variables: str
    ) -> None:
        """Start edges with their runtimes, and wait until all of them answer."""
        runtimes = [self.start_runtime() for _ in range(count if shape == "own" else 1)]
        runtime_ports = [await runtime.port() for runtime in runtimes]
        for index in range(count):
            at = index % len(runtimes)
            wire = await self.wire(runtime_ports[at]) if wired else None
            settings = dict(variables)
            store_wire = await self._store_wire(settings) if wired else None
            edge = self.start_edge(wire.port if wire else runtime_ports[at], **settings)
            self.nodes.append(Node(edge, 0, runtimes[at], runtime_ports[at], wire, store_wire))
        for node in self.nodes:
            node.port = await node.edge.port()

    def start_runtime(self, port: int = 0) -> Child:
        """Start a runtime of the demo agents."""
        return self.crew.start(
            "runtime",
            "agent_runtime",
            AGENT_RUNTIME_LISTEN=f"127.0.0.1:{port}",
            AGENT_RUNTIME_AGENTS=AGENTS,
            AGENT_RUNTIME_DEMO_NOTES=str(self.ledger),
            AGENT_RUNTIME_DRAIN_SECONDS="3",
        )

    def start_edge(self, runtime_port: int, **variables: str) -> Child:
        """Start an edge on this scene's journal."""
        settings = {**QUICK, "PORT": "0", **self.store.variables(), **variables}
        target = f"127.0.0.1:{runtime_port}"
        return self.crew.start("edge", "edge", EDGE_RUNTIME_TARGET=target, **settings)

    async def wire(self, target: int) -> TcpProxy:
        """Put a proxy in front of a port; it is closed with the scene."""
        wire = TcpProxy(target)
        await wire.open()
        self._wires.append(wire)
        return wire

    async def _store_wire(self, settings: dict[str, str]) -> TcpProxy | None:
        """Put a proxy between an edge and its store, where there is a wire at all."""
        if not self.store.emulator:
            return None
        wire = await self.wire(int(self.store.emulator.rpartition(":")[2]))
        settings["FIRESTORE_EMULATOR_HOST"] = f"127.0.0.1:{wire.port}"
        return wire

    @contextmanager
    def store_out_of_reach(self, node: Node) -> Iterator[None]:
        """Let an edge read or write nothing: its wire is stalled, or its file locked for writers."""
        if node.store_wire is not None:
            node.store_wire.stall()
            yield
            node.store_wire.flow()
            return
        assert self.store.path is not None
        with closing(sqlite3.connect(self.store.path, isolation_level=None)) as lock:
            lock.execute("BEGIN IMMEDIATE")
            yield
            lock.execute("ROLLBACK")

    async def session(self, at: int = 0) -> str:
        """Create a session."""
        answer = await post(self.ports[at], "/v1/sessions", {})
        assert answer.status == 201, answer
        return str(answer.json["session_id"])

    async def turn(
        self, session_id: str, *steps: Step, at: int = 0, key: str = "", **policy: str
    ) -> Answer:
        """Start a turn of the scripted agent."""
        self._keys += 1
        header = ("Idempotency-Key", key or f"key-{self._keys:016d}")
        body = {"input": json.dumps(steps), "agent": "script", **policy}
        return await post(self.ports[at], f"/v1/sessions/{session_id}/turns", body, header)

    async def started(self, *steps: Step, at: int = 0, **policy: str) -> Client:
        """Start a turn in a fresh session, and return a client that has seen nothing of it yet."""
        session_id = await self.session(at)
        answer = await self.turn(session_id, *steps, at=at, **policy)
        assert answer.status == 202, answer
        return Client(session_id, answer.json["cursor"])

    def rows(self, session_id: str) -> list[dict[str, Any]]:
        """Return what the ledger tool did for a session."""
        text = self.ledger.read_text("utf-8") if self.ledger.exists() else ""
        # Another session's row may just be under way: only what has its line break is whole.
        rows = [json.loads(line) for line in text.split("\n")[:-1]]
        return [row for row in rows if row["key"].startswith(f"{session_id}/")]

    async def events(self, session_id: str) -> list[Event]:
        """Return every committed event of a session."""
        records = await self.store.records(session_id)
        return [e for record in records if isinstance(record, Events) for e in record.events]

    async def history(self, *clients: Client, **acknowledged: Any) -> History:
        """Return all that is known of the clients' one session; ``acknowledged`` is what was answered 202."""
        (session_id,) = {client.session_id for client in clients}
        return History(
            records=await self.store.records(session_id),
            clients=[client.log for client in clients],
            rows=self.rows(session_id),
            **acknowledged,
        )

    async def judge(self, *clients: Client, ended: bool = True, **acknowledged: Any) -> History:
        """Assert that the history of the clients' one session breaks no promise."""
        history = await self.history(*clients, **acknowledged)
        found = violations(history)
        assert not found, "\n".join(map(str, found))
        if ended:
            assert history.events()[-1].type in TERMINAL
        return history

    async def close(self) -> None:
        """Kill every process and drop every wire."""
        self.crew.close()
        await asyncio.gather(*(wire.close() for wire in self._wires))
