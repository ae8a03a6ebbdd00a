"""What a person can do to both columns, and what is to be seen of them from outside.

Knows nothing of HTTP. Every trouble strikes both columns alike; only the store has no counterpart, for the naive server keeps
nothing that could be taken away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from edge.core.log import Acquire, AnyRecord
from tests.lab.ledger import Ledger
from tests.lab.network import Network
from tests.lab.processes import Child, Fleet
from tests.lab.store import Store

NARROW_BYTES_PER_SECOND = 400


class Troubles:
    """The hand on the processes, the network between them and the browser, and the store."""

    def __init__(
        self, network: Network, edges: Fleet, naive: Fleet, *, store: Store, ledger: Ledger
    ) -> None:
        self._network = network
        self._edges = edges
        self._naive = naive
        self._store = store
        self._ledger = ledger

    @property
    def lasting(self) -> dict[str, bool]:
        """Which of the lasting troubles there are now."""
        return {
            "throttle": self._network.bytes_per_second is not None,
            "pause": any(child.paused for child in self._children()),
            "store": self._store.away,
        }

    async def strike(self, trouble: str, session_id: str, *, on: bool) -> None:
        """Do something once, or begin or end a trouble that lasts; to do so again changes nothing.

        Raises:
            ValueError: there is no such trouble.
            StoreBusy: the store could not be taken away.
        """
        if self.lasting.get(trouble) == on:
            return
        match trouble, on:
            case "cut", True:
                self._network.cut()
            case "kill", True:
                await asyncio.gather(*(c.kill() for c in await self._serving(session_id)))
            case "hole", True:
                self._network.swallow()
            case "throttle", _:
                self._network.bytes_per_second = NARROW_BYTES_PER_SECOND if on else None
            case "store", True:
                await self._store.take()
            case "store", False:
                self._store.give_back()
            case "pause", True:
                for child in await self._serving(session_id):
                    child.pause()
            case "pause", False:
                for child in filter(lambda child: child.paused, self._children()):
                    child.resume()
            case _:
                raise ValueError("no such trouble")

    async def look(self, session_id: str, chat: str) -> dict[str, Any]:
        """Return what is known of the columns' conversations. Raises ``ValueError`` for a bad name."""
        records = await self._store.records(session_id)
        owner = self._owner(records)
        chatted = self._ledger.facts(chat) if chat else None
        return {
            "troubles": self.lasting,
            "idle_cuts": self._network.idle_cuts,
            "durable": {
                "servers": [
                    self._seen(self._edges, child, owner) for child in self._edges.replicas
                ],
                "bookings": self._ledger.facts(session_id).bookings if session_id else 0,
                "said": {"log": records[-1].last_seq} if records else {},
            },
            "naive": {
                "servers": [
                    self._seen(self._naive, child, self._naive.target)
                    for child in self._naive.replicas
                ],
                "bookings": chatted.bookings if chatted else 0,
                "said": chatted.said if chatted else {},
            },
        }

    async def _serving(self, session_id: str) -> list[Child]:
        """Return who drives the session's turn, and who serves the naive column."""
        owner = self._owner(await self._store.records(session_id)) or self._edges.target
        return [child for child in (owner, self._naive.target) if child is not None]

    def _owner(self, records: Sequence[AnyRecord]) -> Child | None:
        writers = [record.writer for record in records if isinstance(record, Acquire)]
        living = [child for child in self._edges.replicas if child is not None and child.alive]
        return next((child for child in living if writers[-1:] == [child.writer()]), None)

    def _children(self) -> list[Child]:
        return [c for c in (*self._edges.replicas, *self._naive.replicas) if c is not None]

    @staticmethod
    def _seen(fleet: Fleet, child: Child | None, owner: Child | None) -> dict[str, Any]:
        if child is None or not child.alive:
            return {"state": "dead", "owner": False, "target": False}
        state = "paused" if child.paused else "up"
        return {"state": state, "owner": child is owner, "target": child is fleet.target}
