"""The naive column's server: an agent's stream the way tutorials write it.

A POST carries the prompt, a background task runs the agent and fills a queue, the response empties the queue. Nothing
is kept, so whoever comes back sends the prompt again. Deliberately absent: everything that this project is about. Not
absent is what a fair comparison needs: it does the same errand with the same tool, it has no time-out of its own, and
it tells the lab what it has said.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from quart import Quart, Response, make_response, request

from edge.process import run_to_exit
from edge.web.server import listen, serve_http, url_of
from tests.lab.errand import Errand, book_table
from tests.lab.ledger import Ledger

Queue = asyncio.Queue[dict[str, Any] | None]


class Run:
    """One answer to one prompt."""

    def __init__(self, ledger: Ledger, chat: str, run: str, word_seconds: float) -> None:
        self.queue: Queue = asyncio.Queue()
        self._ledger = ledger
        self._chat = chat
        self._run = run
        self._word_seconds = word_seconds
        self._number = 0

    async def answer(self, errand: Errand) -> None:
        """Be the agent. Nobody stops it when the reader has gone."""
        for line in errand.before():
            await self._count(line)
        self._emit("tool", "book_table")
        booked = await book_table(self._ledger, self._chat, errand.tool_seconds)
        self._emit("text", f"Booked: {booked}.\n")
        for line in errand.after():
            await self._count(line)
        self.queue.put_nowait(None)

    async def stream(self) -> AsyncIterator[str]:
        """Yield what the agent says as Server-Sent Events."""
        while (event := await self.queue.get()) is not None:
            yield f"data: {json.dumps(event)}\n\n"
        yield "data: [DONE]\n\n"

    async def _count(self, line: list[str]) -> None:
        for word in line:
            self._emit("text", word)
            await asyncio.sleep(self._word_seconds)
        self._emit("text", "\n")

    def _emit(self, kind: str, text: str) -> None:
        self._number += 1
        self._ledger.say(self._chat, self._run, self._number)
        self.queue.put_nowait({"number": self._number, "type": kind, "text": text})


def build_app(ledger: Ledger, word_seconds: float) -> Quart:
    """Return the application."""
    app = Quart(__name__, static_folder=None)
    running: set[asyncio.Task[None]] = set()

    @app.post("/chat")
    async def chat() -> Response:
        body = await request.get_json()
        errand = Errand.parse(body["prompt"])
        run = Run(ledger, body["chat"], body["run"], word_seconds)
        task = asyncio.create_task(run.answer(errand))
        running.add(task)
        task.add_done_callback(running.discard)
        response = await make_response(run.stream(), {"Content-Type": "text/event-stream"})
        assert isinstance(response, Response)
        response.timeout = None
        return response

    @app.get("/healthz")
    async def healthz() -> str:
        return "ok"

    return app


def main() -> None:
    """Serve on a free port until told to stop."""
    app = build_app(Ledger(Path(os.environ["LAB_LEDGER"])), float(os.environ["LAB_WORD_SECONDS"]))

    async def serve(stop: asyncio.Event) -> None:
        async def stopped() -> None:
            await stop.wait()

        with listen("127.0.0.1", 0, stall_seconds=30.0) as listener:
            sys.stdout.write(f"naive listening on {url_of(listener)}\n")
            sys.stdout.flush()
            await serve_http(app, listener, stopped)

    run_to_exit("lab.naive", serve)


if __name__ == "__main__":
    main()
