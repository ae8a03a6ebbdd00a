"""The API's description, kept by hand; a test holds it against the routes and the problem table.

Knows nothing of the code it describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_Object = Mapping[str, Any]


def _ref(name: str) -> _Object:
    return {"$ref": f"#/components/schemas/{name}"}


def _answer(
    description: str, schema: str | None = None, media: str = "application/json"
) -> _Object:
    content = {} if schema is None else {"content": {media: {"schema": _ref(schema)}}}
    return {"description": description, **content}


def _body(schema: str, *, required: bool = True) -> _Object:
    return {"required": required, "content": {"application/json": {"schema": _ref(schema)}}}


def _path(name: str, pattern: str) -> _Object:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(name: str, schema: _Object, description: str) -> _Object:
    return {"name": name, "in": "query", "schema": schema, "description": description}


def _header(name: str, pattern: str, description: str, *, required: bool = False) -> _Object:
    schema = {"type": "string", "pattern": pattern}
    base = {"name": name, "in": "header", "schema": schema, "description": description}
    return {**base, "required": required}


_SESSION_ID = "^[A-Za-z0-9_-]{16,64}$"
_AGENT_NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"

_SESSION = _path("session_id", _SESSION_ID)
_TURN = _path("turn_id", "^[A-Za-z0-9_-]{1,64}$")
_CALL = _path("call_id", "^[A-Za-z0-9_.:-]{1,128}$")
_CHAT = _path("chat_id", _SESSION_ID)
_THREAD = _path("thread_id", _SESSION_ID)
_AGENT = _path("agent", _AGENT_NAME)
_CURSOR_PATTERN = "^(0|[1-9][0-9]{0,8})-(0|[1-9][0-9]{0,11})$"
_CURSOR: _Object = {"type": "string", "pattern": _CURSOR_PATTERN}
_KEY = _header(
    "Idempotency-Key",
    '^"?[A-Za-z0-9_-]{16,128}"?$',
    "Names the turn, for ever: the same key and body give the same turn. Send it again after any "
    "failure whose outcome you do not know.",
    required=True,
)
_LAST_EVENT_ID = _header(
    "Last-Event-ID", _CURSOR_PATTERN, "Resume after this position. Wins over the query."
)
_PROBLEM = _answer("Refused or failed.", "Problem", "application/problem+json")
_EVENTS: _Object = {"text/event-stream": {"schema": {"type": "string"}}}
_STREAM: _Object = {
    "description": "Events as they happen, from the cursor on. `id` is the cursor.",
    "headers": {
        "Last-Event-ID": {
            "schema": _CURSOR,
            "description": "Where the stream really starts; not what was asked for: loss or rewind.",
        }
    },
    "content": _EVENTS,
}


def _string(*values: str) -> _Object:
    return {"type": "string", "enum": list(values)} if values else {"type": "string"}


def _object(required: str, **properties: _Object) -> _Object:
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


_PARTS: _Object = {
    "oneOf": [
        _object("type text", type=_string("text"), text=_string()),
        _object(
            "type uri media_type",
            type=_string("file"),
            uri=_string(),
            media_type=_string(),
            name=_string(),
        ),
        _object("type data_json", type=_string("data"), data_json=_string()),
    ]
}

_SCHEMAS: _Object = {
    "Nothing": _object(""),
    "Session": _object("session_id cursor", session_id=_string(), cursor=_CURSOR),
    "Snapshot": {
        "type": "object",
        "required": ["cursor"],
        "properties": {"cursor": _CURSOR},
        "description": "Settled messages, tool calls and the running turn, as of the cursor.",
    },
    "TurnRequest": _object(
        "input",
        input={
            "oneOf": [
                {"type": "string", "minLength": 1, "maxLength": 32000},
                {"type": "array", "minItems": 1, "maxItems": 32, "items": _PARTS},
            ]
        },
        agent={"type": "string", "pattern": _AGENT_NAME},
        on_disconnect=_string("continue", "cancel"),
        pacing=_string("free", "viewer"),
    ),
    "Turn": _object(
        "session_id turn_id cursor", session_id=_string(), turn_id=_string(), cursor=_CURSOR
    ),
    "Decision": {
        "oneOf": [
            _object("approve", approve={"type": "boolean"}, reason=_string()),
            _object("result", result={"description": "Any JSON: what the client's tool returned."}),
            _object("error", error=_string()),
        ]
    },
    "State": _object("state", state=_string("accepted", "cancelling", "done")),
    # What kits post is theirs to shape; only what is read of it is said here.
    "Chat": {
        "type": "object",
        "required": ["id", "messages"],
        "properties": {"id": _string(), "messages": {"type": "array", "minItems": 1}},
        "description": "What the AI SDK's DefaultChatTransport sends.",
    },
    "RunAgentInput": {
        "type": "object",
        "required": ["threadId", "runId"],
        "properties": {
            "threadId": _string(),
            "runId": _string(),
            "messages": {"type": "array"},
            "resume": {"type": "array"},
        },
        "description": "AG-UI's RunAgentInput.",
    },
    "Agents": {
        "type": "object",
        "required": ["version", "agents"],
        "properties": {"version": _string(), "agents": {"type": "object"}},
    },
    "Stopped": _object("stopped", stopped={"type": "boolean"}),
    "Health": _object("status", status=_string("ok", "ready")),
    "Problem": {
        "type": "object",
        "required": ["type", "title", "status"],
        "properties": {
            "type": {"type": "string", "pattern": "^urn:unbroken:problem:[a-z-]+$"},
            "title": _string(),
            "status": {"type": "integer"},
            "turn_id": _string(),
            "errors": {
                "type": "array",
                "items": _object("pointer detail", pointer=_string(), detail=_string()),
            },
        },
    },
}


def _call(
    summary: str, *parameters: _Object, answers: _Object, body: _Object | None = None
) -> _Object:
    call: dict[str, Any] = {"summary": summary, "responses": {**answers, "default": _PROBLEM}}
    if parameters:
        call["parameters"] = list(parameters)
    if body is not None:
        call["requestBody"] = body
    return call


_KIT_STREAM: _Object = {
    "description": "The kit's own events. A connection that is cut was no end.",
    "content": _EVENTS,
}
_STOP = {
    "200": _answer("It had ended already.", "State"),
    "202": _answer("It is being stopped.", "State"),
}
_NOTHING_IF_ANY = _body("Nothing", required=False)
_UNTIL = _query("until", _string("turn_end", "follow"), "When the stream ends; default turn_end.")
_PINGS = _query("pings", _string("comment", "event"), "What a ping is; default comment.")
_CURSOR_QUERY = _query("last_event_id", _CURSOR, "As the header, for a browser's first connect.")


def _ai_sdk(major: str) -> _Object:
    """Return the calls of one major of the AI SDK."""
    api = f"/v1/ai-sdk/{major}"
    return {
        api: {
            "post": _call(
                "Start a turn as useChat does, or bring decisions to one that waits, and stream it",
                answers={"200": _KIT_STREAM},
                body=_body("Chat"),
            )
        },
        f"{api}/{{chat_id}}/stream": {
            "get": _call(
                "Stream the chat's newest turn from its start",
                _CHAT,
                answers={"200": _KIT_STREAM, "204": _answer("There is none.")},
            )
        },
        f"{api}/{{chat_id}}/stop": {
            "post": _call("Stop the chat's newest turn", _CHAT, answers=_STOP, body=_NOTHING_IF_ANY)
        },
    }


_AG_UI: _Object = {
    "/v1/ag-ui/info": {
        "get": _call("Name the agents", answers={"200": _answer("The agents.", "Agents")})
    },
    "/v1/ag-ui/agent/{agent}/run": {
        "post": _call(
            "Start a run, or answer one that waits, and stream it",
            _AGENT,
            answers={"200": _KIT_STREAM},
            body=_body("RunAgentInput"),
        )
    },
    "/v1/ag-ui/agent/{agent}/connect": {
        "post": _call(
            "Stream the whole thread anew, then live to the end of an open run",
            _AGENT,
            answers={"200": _KIT_STREAM},
            body=_body("RunAgentInput"),
        )
    },
    "/v1/ag-ui/agent/{agent}/stop/{thread_id}": {
        "post": _call(
            "Stop the thread's run",
            _AGENT,
            _THREAD,
            answers={"200": _answer("Whether there was one to stop.", "Stopped")},
        )
    },
}

_PATHS: _Object = {
    "/v1/sessions": {
        "post": _call(
            "Create a session",
            answers={"201": _answer("Created.", "Session")},
            body=_body("Nothing"),
        )
    },
    "/v1/sessions/{session_id}": {
        "get": _call(
            "Read everything so far, with the cursor to stream on from",
            _SESSION,
            answers={"200": _answer("The snapshot.", "Snapshot")},
        )
    },
    "/v1/sessions/{session_id}/turns": {
        "post": _call(
            "Start a turn; with Accept: text/event-stream, stream it in the same response",
            _SESSION,
            _KEY,
            answers={"200": _STREAM, "202": _answer("Started, and durable.", "Turn")},
            body=_body("TurnRequest"),
        )
    },
    "/v1/sessions/{session_id}/events": {
        "get": _call(
            "Stream the session's events",
            _SESSION,
            _LAST_EVENT_ID,
            _CURSOR_QUERY,
            _UNTIL,
            _PINGS,
            answers={"200": _STREAM, "204": _answer("Nothing is left to say: do not reconnect.")},
        )
    },
    "/v1/sessions/{session_id}/turns/{turn_id}/cancel": {
        "post": _call(
            "Stop a turn; once answered, no further tool call of it can start",
            _SESSION,
            _TURN,
            answers=_STOP,
            body=_NOTHING_IF_ANY,
        )
    },
    "/v1/sessions/{session_id}/turns/{turn_id}/tool-calls/{call_id}": {
        "post": _call(
            "Decide a tool call that waits for a person or for the client",
            _SESSION,
            _TURN,
            _CALL,
            answers={"202": _answer("Decided, and durable.", "State")},
            body=_body("Decision"),
        )
    },
    **_ai_sdk("v6"),
    **_ai_sdk("v7"),
    **_AG_UI,
    "/healthz": {"get": _call("Is the process alive", answers={"200": _answer("Yes.", "Health")})},
    "/readyz": {"get": _call("Can it serve", answers={"200": _answer("Yes.", "Health")})},
}

_TOKEN: _Object = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "Asked for by an edge that was told of an issuer, and by no other.",
}

OPENAPI: _Object = {
    "openapi": "3.1.0",
    "info": {
        "title": "Unbroken edge",
        "version": "1",
        "description": "Agent answers that survive the network. The rules are in PROTOCOL.md.",
    },
    "paths": _PATHS,
    "components": {"schemas": _SCHEMAS, "securitySchemes": {"token": _TOKEN}},
    "security": [{"token": []}, {}],
}
