"""The addresses for machines and people beside the API: health, metrics, the API's description,
the chat page and its files.

Knows nothing of sessions but whether they can be served.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

from quart import Response

from edge.core.errors import Draining
from edge.web.openapi import OPENAPI
from edge.web.parts import Parts
from edge.web.problems import Refused
from edge.web.session_routes import json_response

# Nothing from anywhere else, nothing inline: a page that shows what a model wrote must not run it.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

# By suffix. Not the machine's own table, which differs, and takes TypeScript for video.
_MEDIA_TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "svg": "image/svg+xml",
    "ts": "text/plain",
}


class Pages:
    """One method per address; the files are read once, when the application is built."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # A closed table: what it does not name is not there, whatever the path spells.
        self._files = dict(_files_in(resources.files("edge") / "static"))

    async def healthz(self) -> Response:
        """Say that the process lives; an orchestrator restarts it otherwise."""
        return json_response({"status": "ok"})

    async def readyz(self) -> Response:
        """Say whether requests should come here."""
        if self._parts.registry.draining:
            raise Draining
        await self._parts.registry.check()
        return json_response({"status": "ready"})

    async def metrics(self) -> Response:
        return Response(self._parts.metrics(), content_type="text/plain; version=0.0.4")

    async def openapi(self) -> Response:
        return json_response(OPENAPI)

    async def index(self) -> Response:
        return await self.static("index.html")

    async def static(self, name: str) -> Response:
        if name not in self._files:
            raise Refused("not-found")
        media_type = _MEDIA_TYPES[name.rpartition(".")[2]]
        response = Response(self._files[name], content_type=f"{media_type}; charset=utf-8")
        response.headers["Cache-Control"] = "no-cache"
        response.headers["Content-Security-Policy"] = _PAGE_POLICY
        return response


def _files_in(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield the path below ``folder`` and the content of every file in it."""
    for item in folder.iterdir():
        if item.is_file():
            yield prefix + item.name, item.read_bytes()
        else:
            yield from _files_in(item, f"{prefix}{item.name}/")
