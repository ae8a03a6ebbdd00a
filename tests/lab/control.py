"""The lab's page and its control calls, as a Quart application.

Knows nothing of processes; ``tests.lab.troubles`` does. It is reached on loopback only, and its guard refuses pages of any other
origin: what is asked for here kills processes.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, cast

from quart import Quart, Response, abort, request

from edge.web.guard import Guard
from tests.lab.settings import LOOPBACK, Settings
from tests.lab.store import StoreBusy
from tests.lab.troubles import Troubles

_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def build_app(troubles: Troubles, settings: Settings) -> Quart:
    """Return the application, its guard in front."""
    app = Quart(__name__, static_folder=None)
    _add_pages(app)
    _add_calls(app, troubles, settings)
    guard = Guard(cast(Any, app.asgi_app), allowed_hosts=frozenset(LOOPBACK))
    app.asgi_app = guard  # type: ignore[method-assign, assignment]
    return app


def _add_pages(app: Quart) -> None:
    """Serve a closed table of files: the lab's own, and the client library that the edge ships."""
    files = dict(_files("lab/", resources.files("tests.lab") / "static"))
    files |= dict(_files("static/unbroken/", resources.files("edge") / "static" / "unbroken"))

    @app.get("/")
    async def index() -> Response:
        return await file("lab/lab.html")

    @app.get("/<path:name>")
    async def file(name: str) -> Response:
        if name not in files:
            abort(404)
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        response = Response(files[name], content_type=f"{media_type}; charset=utf-8")
        response.headers["Cache-Control"] = "no-cache"
        response.headers["Content-Security-Policy"] = _PAGE_POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


def _files(prefix: str, folder: Traversable) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _files(f"{prefix}{item.name}/", item)
        else:
            yield prefix + item.name, item.read_bytes()


def _add_calls(app: Quart, troubles: Troubles, settings: Settings) -> None:
    @app.get("/api/settings")
    async def told() -> dict[str, float]:
        return {
            "tool_seconds": settings.tool_seconds,
            "idle_seconds": settings.idle_seconds,
            "ping_seconds": settings.ping_seconds,
        }

    @app.get("/api/look")
    async def look() -> dict[str, Any]:
        try:
            return await troubles.look(
                request.args.get("session", ""), request.args.get("chat", "")
            )
        except ValueError:
            abort(400)

    @app.post("/api/troubles/<name>")
    async def strike(name: str) -> dict[str, Any]:
        asked = await request.get_json()
        try:
            await troubles.strike(name, str(asked["session"]), on=asked["on"] is True)
        except (KeyError, TypeError, ValueError):
            abort(400)
        except StoreBusy:
            abort(503)
        return {"troubles": troubles.lasting}
