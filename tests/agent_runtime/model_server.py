"""A local HTTP server that speaks the streaming format of OpenAI's chat completions.

It plays back scripted answers, one for each request, and keeps the requests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

Chunk = dict[str, Any]

CUT = "cut the connection"
"""In place of a chunk: break off without an end."""


class Answer:
    """One scripted answer: a status, and the chunks that follow a 200."""

    def __init__(self, *chunks: Chunk | str, status: int = 200) -> None:
        self.status = status
        self.chunks = chunks


class ModelServer:
    """What the server heard, and what it will say."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one request of a connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.split("content-length:")[1].split("\r\n")[0])
            self.requests.append(json.loads(await reader.readexactly(length)))
            await self._play(self._answers[len(self.requests) - 1], writer)
        finally:
            writer.close()

    async def _play(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        if answer.status != 200:
            body = b'{"error": {"message": "quoting the prompt"}}'
            head = f"HTTP/1.1 {answer.status} No\r\ncontent-type: application/json\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            return
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        for chunk in answer.chunks:
            if chunk is CUT:
                return
            line = f"data: {json.dumps(chunk)}\n\n".encode()
            writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            await writer.drain()
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()


@asynccontextmanager
async def model_server(*answers: Answer) -> AsyncIterator[ModelServer]:
    """Serve the answers on a free loopback port."""
    model = ModelServer(answers)
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield model
    finally:
        server.close()


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None) -> Chunk:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "m",
        "choices": [choice],
    }


def said(text: str) -> Chunk:
    return chunk({"content": text})


def call_part(index: int, arguments: str, *, name: str = "", call_id: str = "") -> Chunk:
    function: dict[str, Any] = {"arguments": arguments}
    part: dict[str, Any] = {"index": index, "function": function}
    if name:
        function["name"] = name
        part |= {"id": call_id, "type": "function"}
    return chunk({"tool_calls": [part]})


def end(reason: str = "stop") -> Chunk:
    return chunk(finish=reason)


def usage(tokens_in: int, tokens_out: int) -> Chunk:
    total = tokens_in + tokens_out
    used = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": total}
    return {**chunk(), "choices": [], "usage": used}
