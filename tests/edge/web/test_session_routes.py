"""The calls of the API, over a registry that answers what the test says."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from edge.core import errors
from edge.core.cursor import Cursor
from edge.core.errors import EdgeError, TurnInProgress
from edge.core.requests import TurnRequest
from edge.web.app import build_app
from tests.edge.web.scripted_registry import SESSION, ScriptedRegistry, ScriptedViewer, shown
from tests.support.live_edge import parts_for
from tests.support.sse import parse

KEY = {"Idempotency-Key": "key-0123456789ab"}
TURN = f"/v1/sessions/{SESSION}/turns"
EVENTS = f"/v1/sessions/{SESSION}/events"
HOST = {"Host": "127.0.0.1:8080"}


class Edge:
    """The application and its test client."""

    def __init__(self, registry: ScriptedRegistry | None = None) -> None:
        self.registry = registry or ScriptedRegistry()
        self.client = build_app(parts_for(self.registry)).test_client()

    async def get(self, path: str, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.get(path, headers={**HOST, **named})

    async def post(self, path: str, body: object, headers: Mapping[str, str] = KEY) -> Any:
        return await self.client.post(path, json=body, headers={**HOST, **headers})


def code_of(body: Mapping[str, str]) -> str:
    return body["type"].removeprefix("urn:unbroken:problem:")


async def test_a_session_is_created_with_the_cursor_to_start_from() -> None:
    edge = Edge()
    response = await edge.post("/v1/sessions", {})
    assert response.status_code == 201
    assert await response.get_json() == {"session_id": SESSION, "cursor": "0-0"}
    assert edge.registry.calls == [("create_session", "local")]


async def test_a_snapshot_is_passed_on_as_it_is_and_kept_by_no_cache() -> None:
    response = await Edge().get(f"/v1/sessions/{SESSION}")
    assert await response.get_json() == {"session_id": SESSION, "cursor": "1-2"}
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_turn_is_started_with_everything_that_was_asked_for() -> None:
    edge = Edge()
    response = await edge.post(TURN, {"input": "Hi", "agent": "echo", "on_disconnect": "cancel"})
    assert response.status_code == 202
    assert await response.get_json() == {"session_id": SESSION, "turn_id": "t1", "cursor": "1-4"}
    assert "Idempotency-Replayed" not in response.headers
    ((_, uid, session_id, request),) = edge.registry.calls
    assert (uid, session_id) == ("local", SESSION)
    assert isinstance(request, TurnRequest)
    assert (request.agent, request.on_disconnect) == ("echo", "cancel")
    assert request.idempotency_key == KEY["Idempotency-Key"]


async def test_a_repeat_says_that_it_is_one() -> None:
    response = await Edge(ScriptedRegistry(replayed=True)).post(TURN, {"input": "Hi"})
    assert (response.status_code, response.headers["Idempotency-Replayed"]) == (202, "true")


@pytest.mark.parametrize("key", ['"key-0123456789ab"', "key-0123456789ab"])
async def test_a_key_may_be_written_as_the_draft_says_or_as_everybody_does(key: str) -> None:
    edge = Edge()
    await edge.post(TURN, {"input": "Hi"}, {"Idempotency-Key": key})
    assert edge.registry.calls[0][3].idempotency_key == "key-0123456789ab"


@pytest.mark.proves("P-SSE-18")
async def test_a_post_that_asks_for_a_stream_is_answered_by_its_turn() -> None:
    viewer = ScriptedViewer([[shown(5, "turn_start"), shown(6, "done")]])
    edge = Edge(ScriptedRegistry(viewer=viewer))
    response = await edge.post(TURN, {"input": "Hi"}, {**KEY, "Accept": "text/event-stream"})
    assert response.status_code == 200
    messages = parse(await response.get_data())
    assert [message.last_event_id for message in messages] == ["1-5", "1-6"]
    assert edge.registry.calls[1] == ("attach", "local", SESSION, Cursor(1, 4), "turn_end")


@pytest.mark.parametrize("accept", ["*/*", "application/json, text/event-stream", "text/*"])
async def test_a_post_that_takes_anything_is_answered_with_json(accept: str) -> None:
    edge = Edge(ScriptedRegistry(viewer=ScriptedViewer([[shown(5)]])))
    response = await edge.post(TURN, {"input": "Hi"}, {**KEY, "Accept": accept})
    assert response.content_type == "application/json"


@pytest.mark.proves("P-HTTP-4")
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "idempotency-key-required"),
        ({"Idempotency-Key": ""}, "idempotency-key-invalid"),
        ({"Idempotency-Key": "short"}, "idempotency-key-invalid"),
        ({"Idempotency-Key": "k" * 129}, "idempotency-key-invalid"),
        ({"Idempotency-Key": "key 0123456789abc"}, "idempotency-key-invalid"),
        ({"Idempotency-Key": '"key-0123456789ab'}, "idempotency-key-invalid"),
        ({"Idempotency-Key": "ключ-ключ-ключ-ключ"}, "idempotency-key-invalid"),
    ],
)
async def test_a_turn_needs_one_good_key(headers: Mapping[str, str], code: str) -> None:
    edge = Edge()
    response = await edge.post(TURN, {"input": "Hi"}, headers)
    assert response.status_code == 400
    assert code_of(await response.get_json()) == code
    assert edge.registry.calls == []


@pytest.mark.parametrize(
    ("state", "status", "said"), [("accepted", 202, "cancelling"), ("done", 200, "done")]
)
async def test_a_cancel_says_whether_there_was_anything_to_stop(
    state: str, status: int, said: str
) -> None:
    edge = Edge(ScriptedRegistry(cancelled=state))
    response = await edge.client.post(f"{TURN}/t1/cancel", headers=HOST)
    assert response.status_code == status
    assert await response.get_json() == {"state": said}
    assert edge.registry.calls == [("cancel", "local", SESSION, "t1")]


async def test_a_decision_is_passed_on_as_the_log_keeps_it() -> None:
    edge = Edge()
    response = await edge.post(f"{TURN}/t1/tool-calls/c1", {"result": {"n": 1}}, {})
    assert response.status_code == 202
    (*call, decision) = edge.registry.calls[0]
    assert call == ["resolve", "local", SESSION, "t1", "c1"]
    assert json.loads(decision) == {"outcome": "succeeded", "result_json": '{"n":1}'}


@pytest.mark.proves("P-HTTP-3")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/sessions/..",
        "/v1/sessions/a%2Fb",
        "/v1/sessions/%00",
        "/v1/sessions/" + "s" * 300,
        "/v1/sessions/\u017f" + "s" * 20,
        "/v1/sessions//",
        "/v1/sessions/short/turns",
    ],
)
async def test_an_id_that_nobody_made_is_an_unknown_session_and_nothing_is_read(path: str) -> None:
    edge = Edge()
    response = await edge.get(path)
    if path.endswith("/turns"):
        response = await edge.post(path, {"input": "Hi"})
    assert response.status_code == 404
    assert code_of(await response.get_json()) == "session-not-found"
    assert edge.registry.calls == []


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"{TURN}/t%20/cancel", "turn-not-found"),
        (f"{TURN}/{'t' * 65}/cancel", "turn-not-found"),
        (f"{TURN}/t1/tool-calls/c%0A1", "tool-call-not-found"),
    ],
)
async def test_other_ids_that_nobody_made_are_unknown_too(path: str, code: str) -> None:
    edge = Edge()
    response = await edge.post(path, {"approve": True})
    assert (response.status_code, code_of(await response.get_json())) == (404, code)
    assert edge.registry.calls == []


@pytest.mark.proves("P-HTTP-1", "P-HTTP-15")
@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (errors.SessionNotFound(), 404, "session-not-found"),
        (errors.SessionExpired(), 410, "session-expired"),
        (errors.IdempotencyKeyReused(), 422, "idempotency-key-reused"),
        (TurnInProgress("t0"), 409, "turn-in-progress"),
        (errors.UnknownAgent(), 422, "unknown-agent"),
        (errors.JournalUnavailable("hunter2"), 503, "journal-unavailable"),
        (errors.RuntimeUnavailable("hunter2"), 503, "runtime-unavailable"),
        (errors.Draining(), 503, "draining"),
        (errors.Fenced(), 500, "internal-error"),
        (ValueError("hunter2"), 500, "internal-error"),
    ],
)
async def test_every_failure_of_a_call_has_its_answer(
    failure: Exception, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    edge = Edge(ScriptedRegistry(failure=failure))
    response = await edge.post(TURN, {"input": "Hi"})
    body = await response.get_json()
    assert (response.status_code, code_of(body)) == (status, code)
    assert "hunter2" not in json.dumps(body)
    assert ("Retry-After" in response.headers) == (status == 503)
    logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert bool(logged) == (status == 500)
    assert body.get("turn_id") == ("t0" if isinstance(failure, TurnInProgress) else None)


@pytest.mark.parametrize("path", ["/v1/sessions", TURN, f"{TURN}/t1/cancel"])
async def test_a_draining_instance_takes_no_writes(path: str) -> None:
    edge = Edge(ScriptedRegistry(draining=True))
    response = await edge.post(path, {"input": "Hi"})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert code_of(await response.get_json()) == "draining"
    assert edge.registry.calls == []


@pytest.mark.parametrize("kind", [EdgeError, errors.LogBroken])
async def test_our_own_failure_is_counted(kind: type[EdgeError]) -> None:
    edge = Edge(ScriptedRegistry(failure=kind("hunter2")))
    await edge.get(f"/v1/sessions/{SESSION}")
    metrics = await (await edge.get("/metrics")).get_data(as_text=True)
    assert "unbroken_http_errors_total 1" in metrics.splitlines()
