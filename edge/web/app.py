"""Builds the Quart application from its parts: the table of addresses, and the end of every error.

Knows nothing of how it is served.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

from quart import Quart, Response, request
from quart.routing import QuartRule
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from edge.core.errors import EdgeError, SessionNotFound
from edge.ports import Telemetry
from edge.web.ag_ui_routes import AgUiRoutes
from edge.web.ai_sdk_routes import AiSdkRoutes
from edge.web.bodies import READ_TIMEOUT_SECONDS
from edge.web.guard import MAX_CHAT_BYTES, Guard
from edge.web.pages import Pages
from edge.web.parts import Parts
from edge.web.problems import Refused, is_known, problem_of
from edge.web.session_routes import SessionRoutes

Handler = Callable[..., Awaitable[Response]]

_log = logging.getLogger(__name__)

_CODES = {
    404: "not-found",
    408: "request-timeout",
    413: "body-too-large",
    500: "internal-error",
}

_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


def build_app(parts: Parts) -> Quart:
    """Return the application, its guard in front."""
    app = Quart("edge.web", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_CHAT_BYTES  # most calls have less: edge.web.bodies
    app.config["BODY_TIMEOUT"] = READ_TIMEOUT_SECONDS
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_rule_class = _ExactRule
    app.url_map.merge_slashes = False  # a doubled slash is another address, not a redirect
    for method, path, handler in _routes(parts):
        app.add_url_rule(path, f"{method} {path}", handler, methods=[method])
    _ErrorEnds(parts.telemetry).bind(app)
    app.after_request(_secure)
    guard = Guard(cast(Any, app.asgi_app), allowed_hosts=parts.allowed_hosts)
    app.asgi_app = guard  # type: ignore[method-assign, assignment]
    return app


def _routes(parts: Parts) -> list[tuple[str, str, Handler]]:
    sessions, pages = SessionRoutes(parts), Pages(parts)
    session = "/v1/sessions/<session_id>"
    turn = f"{session}/turns/<turn_id>"
    return [
        *_ai_sdk_routes(parts),
        *_ag_ui_routes(parts),
        ("POST", "/v1/sessions", sessions.create_session),
        ("GET", session, sessions.snapshot),
        ("POST", f"{session}/turns", sessions.start_turn),
        ("GET", f"{session}/events", sessions.events),
        ("POST", f"{turn}/cancel", sessions.cancel),
        ("POST", f"{turn}/tool-calls/<call_id>", sessions.resolve),
        ("GET", "/healthz", pages.healthz),
        ("GET", "/readyz", pages.readyz),
        ("GET", "/metrics", pages.metrics),
        ("GET", "/openapi.json", pages.openapi),
        ("GET", "/", pages.index),
        ("GET", "/static/<path:name>", pages.static),
    ]


def _ai_sdk_routes(parts: Parts) -> Iterator[tuple[str, str, Handler]]:
    for major, turn_format in parts.ai_sdk.items():
        chats = AiSdkRoutes(parts, turn_format)
        api = f"/v1/ai-sdk/{major}"
        yield "POST", api, chats.send
        yield "GET", f"{api}/<chat_id>/stream", chats.resume
        yield "POST", f"{api}/<chat_id>/stop", chats.stop


def _ag_ui_routes(parts: Parts) -> Iterator[tuple[str, str, Handler]]:
    threads = AgUiRoutes(parts)
    agent = "/v1/ag-ui/agent/<agent>"
    yield "GET", "/v1/ag-ui/info", threads.info
    yield "POST", f"{agent}/run", threads.run
    yield "POST", f"{agent}/connect", threads.connect
    yield "POST", f"{agent}/stop/<thread_id>", threads.stop


class _ExactRule(QuartRule):
    """A rule for exactly the methods it names: a HEAD must not open a stream."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.methods is not None:
            self.methods.discard("HEAD")


class _ErrorEnds:
    """Where every error ends: as a problem, counted, and logged by its type if it is ours."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def bind(self, app: Quart) -> None:
        app.register_error_handler(EdgeError, self._edge_error)
        app.register_error_handler(HTTPException, self._http_error)
        app.register_error_handler(Exception, self._failure)

    async def _edge_error(self, error: EdgeError) -> Response:
        if not is_known(error):
            _log.error("a request failed", extra={"code": error.code})
        return self._respond(error)

    async def _http_error(self, error: HTTPException) -> Response:
        return self._respond(_refusal(error))

    async def _failure(self, error: Exception) -> Response:
        _log.error("a request failed", exc_info=error)
        return self._respond(EdgeError())

    def _respond(self, error: EdgeError) -> Response:
        problem = problem_of(error)
        self._telemetry.count("http_errors" if problem.status >= 500 else "http_refusals")
        return Response(problem.body, problem.status, headers=dict(problem.headers))


def _refusal(error: HTTPException) -> EdgeError:
    """Return our own name for what Quart refused."""
    if isinstance(error, MethodNotAllowed):
        return Refused("method-not-allowed", allow=tuple(error.valid_methods or ()))
    if error.code == 404 and request.path.startswith("/v1/sessions/"):
        return SessionNotFound()  # an id with a slash in it is an id that does not exist
    return Refused(_CODES.get(error.code or 400, "bad-request"))


async def _secure(response: Response) -> Response:
    for name, value in _SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    return response
