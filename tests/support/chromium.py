"""Drives a headless Chromium over its debugging pipe: open a page, run its script, wait for what it shows.

Knows nothing of the page. The pipe needs no port and no WebSocket: messages are JSON, each ended by a NUL. Every wait
is bounded.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from tests.support.processes import POLL_SECONDS

PATIENCE_SECONDS = 60.0
MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
]


def find_chromium() -> str | None:
    """Return where Chromium is, if it is here."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass(slots=True)
class Chromium:
    """A running browser."""

    reader: StreamReader
    writer: StreamWriter
    _asked: dict[int, asyncio.Future[Any]] = field(default_factory=dict)

    async def call(self, method: str, target: str = "", **parameters: Any) -> Any:
        """Call a method of the DevTools protocol and return its result.

        Raises:
            RuntimeError: the browser refused.
            TimeoutError: it did not answer.
        """
        number = len(self._asked) + 1
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        message |= {"sessionId": target} if target else {}
        self.writer.write(json.dumps(message).encode() + b"\0")
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await answer

    async def listen(self) -> None:
        """Hand each answer to whoever asked, until the browser is gone."""
        while True:
            message = json.loads((await self.reader.readuntil(b"\0"))[:-1])
            if (number := message.get("id")) is None:
                continue  # an event: what a page does is asked of the page
            if not (answer := self._asked[number]).done():
                failure = message.get("error")
                if failure:
                    answer.set_exception(RuntimeError(failure["message"]))
                else:
                    answer.set_result(message["result"])

    @asynccontextmanager
    async def page(self, url: str) -> AsyncIterator[Page]:
        """Open a page that shares nothing with any other."""
        context = (await self.call("Target.createBrowserContext"))["browserContextId"]
        opened = await self.call("Target.createTarget", url=url, browserContextId=context)
        target = opened["targetId"]
        attached = await self.call("Target.attachToTarget", targetId=target, flatten=True)
        try:
            yield Page(self, attached["sessionId"])
        finally:
            await self.call("Target.disposeBrowserContext", browserContextId=context)


@dataclass(slots=True)
class Page:
    """One tab."""

    browser: Chromium
    target: str

    async def run(self, script: str) -> Any:
        """Return the value of an expression; a promise is awaited. Raises ``RuntimeError``."""
        result = await self.browser.call(
            "Runtime.evaluate",
            self.target,
            expression=script,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true of the page; while it cannot be evaluated it is not."""
        deadline = monotonic() + PATIENCE_SECONDS
        while not await self.run(f"(() => {{ try {{ return {script} }} catch {{ }} }})()"):
            assert monotonic() < deadline, await self.run("document.body.innerText")
            await asyncio.sleep(POLL_SECONDS)


@contextmanager
def _process(path: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Run a browser; the values are our ends of its pipe, to read and to write."""
    to_browser, ours_out = os.pipe()
    ours_in, from_browser = os.pipe()
    command = [path, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    wires: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)),
        (os.POSIX_SPAWN_DUP2, to_browser, 3),
        (os.POSIX_SPAWN_DUP2, from_browser, 4),
    ]
    pid = os.posix_spawn(path, command, os.environ, file_actions=wires, setpgroup=0)
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield ours_in, ours_out
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@asynccontextmanager
async def chromium(path: str, folder: Path) -> AsyncIterator[Chromium]:
    """Run a browser with a profile of its own in ``folder``; it is killed at the end, with its children."""
    with _process(path, folder) as (ours_in, ours_out):
        async with _piped(ours_in, ours_out) as browser:
            yield browser


@asynccontextmanager
async def _piped(ours_in: int, ours_out: int) -> AsyncIterator[Chromium]:
    loop = asyncio.get_running_loop()
    reader = StreamReader(MESSAGE_LIMIT_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    reading, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(ours_in, "rb"))
    writing, flow = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(ours_out, "wb")
    )
    browser = Chromium(reader, StreamWriter(writing, flow, None, loop))
    listening = asyncio.create_task(browser.listen())
    try:
        yield browser
    finally:
        listening.cancel()
        await asyncio.wait([listening])
        writing.close()
        reading.close()
