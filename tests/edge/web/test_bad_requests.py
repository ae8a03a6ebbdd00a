"""Bad requests over raw sockets, as no client library would send them: each has its exact answer."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio
from quart import Quart

from edge.web.app import build_app
from edge.web.guard import MAX_BODY_BYTES
from tests.edge.web.scripted_registry import SESSION, ScriptedRegistry, ScriptedViewer
from tests.support.http_client import Headers, ask, ask_raw, connection, exchange, post
from tests.support.live_edge import parts_for, served

EVENTS = f"/v1/sessions/{SESSION}/events"
TURNS = f"/v1/sessions/{SESSION}/turns"
KEY = ("Idempotency-Key", "key-0123456789ab")
JSON = ("Content-Type", "application/json")
BODY = b'{"input":"Hi"}'


@pytest_asyncio.fixture
async def registry() -> ScriptedRegistry:
    return ScriptedRegistry(viewer=ScriptedViewer())


@pytest_asyncio.fixture
async def port(registry: ScriptedRegistry) -> AsyncIterator[int]:
    async with served(registry) as number:
        yield number


@pytest.mark.proves("T36", "S13", "P-SSE-2")
@pytest.mark.parametrize(
    "text",
    [
        *("abc", "57", "1-", "-1", "1-2-3", "01-2", "1-02", "+1-2", "1e3-2", "0x1-2", "1-2;", "-"),
        *("", "1_0-2", "1-2<", "9" * 400, "1-" + "9" * 13),
        "\uff11-\uff12".encode().decode("latin-1"),
    ],
)
@pytest.mark.parametrize("where", ["header", "query"])
async def test_a_cursor_that_was_never_sent_is_refused_before_anything_is_read(
    port: int, registry: ScriptedRegistry, text: str, where: str
) -> None:
    quoted = text.replace("+", "%2B").replace(";", "%3B").encode("ascii", "replace").decode()
    if where == "header":
        answer = await ask(port, "GET", EVENTS, [("Last-Event-ID", text)])
    else:
        answer = await ask(port, "GET", f"{EVENTS}?last_event_id={quoted}")
    assert (answer.status, answer.code) == (400, "invalid-last-event-id")
    assert registry.calls == []


@pytest.mark.parametrize("bad", [b"1-2\x00", b"1-2\rX: y", b"1-\r2"])
async def test_control_bytes_in_a_cursor_never_get_past_the_parser(
    port: int, registry: ScriptedRegistry, bad: bytes
) -> None:
    head = f"GET {EVENTS} HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: ".encode()
    answer = await ask_raw(port, head + bad + b"\r\n\r\n")
    assert answer.status == 400
    assert registry.calls == []


class Case(NamedTuple):
    method: str
    target: str
    headers: Headers
    status: int
    code: str


@pytest.mark.proves("P-HTTP-16")
@pytest.mark.parametrize(
    "case",
    [
        Case("GET", EVENTS, [("Accept", "application/json")], 406, "not-acceptable"),
        Case("GET", EVENTS, [("Accept", "text/event-stream;q=0")], 406, "not-acceptable"),
        Case("GET", EVENTS, [("Last-Event-ID", "1-2")] * 2, 400, "duplicate-header"),
        Case("GET", EVENTS, [("Authorization", "Bearer a")] * 2, 400, "duplicate-header"),
        Case("GET", f"{EVENTS}?until=later", [], 400, "invalid-query"),
        Case("GET", f"{EVENTS}?until=follow&until=follow", [], 400, "invalid-query"),
        Case("GET", f"{EVENTS}?pings=none", [], 400, "invalid-query"),
        Case("GET", f"{EVENTS}?last_event_id=1-2&lastEventId=1-3", [], 400, "invalid-query"),
        Case("GET", f"{EVENTS}?access_token=hunter2", [], 400, "credentials-in-url"),
        Case("GET", f"{EVENTS}?Token=hunter2", [], 400, "credentials-in-url"),
        Case("GET", EVENTS, [("Host", "evil.test")], 421, "host-not-allowed"),
        Case("GET", EVENTS, [("Host", "127.0.0.1.evil.test:8080")], 421, "host-not-allowed"),
        Case("GET", EVENTS, [("Origin", "null")], 403, "origin-not-allowed"),
        Case("GET", EVENTS, [("Origin", "https://evil.test")], 403, "origin-not-allowed"),
        Case("POST", TURNS, [("Origin", "http://localhost:1")], 403, "origin-not-allowed"),
        Case("OPTIONS", EVENTS, [("Origin", "https://evil.test")], 403, "origin-not-allowed"),
        Case("GET", "/nothing", [], 404, "not-found"),
        Case("GET", "/v1//sessions", [], 404, "not-found"),
        Case("GET", "/static/../config.py", [], 404, "not-found"),
        Case("GET", "/static/%2e%2e%2fconfig.py", [], 404, "not-found"),
        Case("GET", "/" + "x" * 3_000, [], 414, "uri-too-long"),
        Case("GET", "/?" + "x" * 2_048, [], 414, "uri-too-long"),
        Case("GET", "/healthz", [("X", "x" * 20_000)], 431, "headers-too-large"),
        Case("POST", TURNS, [KEY], 415, "unsupported-media-type"),
        Case("POST", TURNS, [KEY, KEY, JSON], 400, "idempotency-key-invalid"),
        Case("POST", TURNS, [JSON], 400, "idempotency-key-required"),
        Case("POST", TURNS, [KEY, JSON, JSON], 400, "duplicate-header"),
    ],
)
async def test_a_bad_request_has_its_exact_answer(port: int, case: Case) -> None:
    answer = await ask(port, case.method, case.target, case.headers)
    assert (answer.status, answer.code) == (case.status, case.code)
    assert b"hunter2" not in answer.body
    assert not any(name.startswith("access-control-") for name in answer.headers)


@pytest.mark.parametrize("method", ["HEAD", "PUT", "PATCH", "DELETE", "POST", "OPTIONS"])
async def test_a_stream_answers_get_alone(port: int, method: str) -> None:
    answer = await ask(port, method, EVENTS)
    assert (answer.status, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "application/jsonx",
    ],
)
async def test_a_body_of_another_type_is_refused(port: int, content_type: str) -> None:
    headers = [KEY, ("Content-Type", content_type)]
    answer = await ask(port, "POST", TURNS, headers, BODY)
    assert (answer.status, answer.code) == (415, "unsupported-media-type")


@pytest.mark.parametrize("charset", ["", "; charset=utf-8", '; charset="UTF-8"'])
async def test_json_may_say_that_it_is_utf_8(port: int, charset: str) -> None:
    headers = [KEY, ("Content-Type", f"application/json{charset}")]
    assert (await ask(port, "POST", TURNS, headers, BODY)).status == 202


async def test_a_compressed_body_is_refused(port: int) -> None:
    headers = [KEY, JSON, ("Content-Encoding", "gzip")]
    answer = await ask(port, "POST", TURNS, headers, gzip.compress(BODY))
    assert (answer.status, answer.code) == (415, "unsupported-media-type")


@pytest.mark.parametrize("body", [b"", b"{", b'{"input":"a","input":"b"}', BODY + b"x"])
async def test_a_body_that_is_not_json_is_refused(port: int, body: bytes) -> None:
    answer = await ask(port, "POST", TURNS, [KEY, JSON], body)
    assert (answer.status, answer.code) == (400, "invalid-json")


async def test_a_body_of_the_wrong_shape_is_told_where(port: int) -> None:
    answer = await post(port, TURNS, {"input": "", "agnet": "x"}, KEY)
    assert (answer.status, answer.code) == (422, "invalid-body")
    assert [error["pointer"] for error in answer.json["errors"]] == ["", "/input"]


async def test_the_largest_body_is_read_and_one_byte_more_is_refused_before_it_comes(
    port: int, registry: ScriptedRegistry
) -> None:
    padded = BODY + b" " * (MAX_BODY_BYTES - len(BODY))
    assert (await ask(port, "POST", TURNS, [KEY, JSON], padded)).status == 202
    length = ("Content-Length", str(MAX_BODY_BYTES + 1))
    answer = await ask(port, "POST", TURNS, [KEY, JSON, length])
    assert (answer.status, answer.code) == (413, "body-too-large")
    assert len(registry.calls) == 1


@pytest.mark.proves("P-HTTP-8")
async def test_a_chunked_body_is_refused_as_it_grows_and_the_connection_closes(port: int) -> None:
    headers = [KEY, JSON, ("Transfer-Encoding", "chunked")]
    lines = "".join(f"{name}: {value}\r\n" for name, value in [("Host", "localhost"), *headers])
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    raw = f"POST {TURNS} HTTP/1.1\r\n{lines}\r\n".encode() + chunk * 5
    async with connection(port, raw, "POST") as opened:
        await opened.head()
        assert opened.status == 413
        await opened.body()
        assert await asyncio.wait_for(opened.reader.read(), 5) == b""


@pytest.mark.proves("P-HTTP-8")
async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    app: Quart = build_app(parts_for(ScriptedRegistry()))
    app.config["BODY_TIMEOUT"] = 0.01
    headers = {"Host": "localhost", **dict([KEY, JSON])}
    request = app.test_client().request(TURNS, method="POST", headers=headers)
    async with request as sent:
        await sent.send(b"{")
        async with asyncio.timeout(5):
            body = await sent.receive()
    assert (await sent.as_response()).status_code == 408
    assert json.loads(body)["type"].endswith(":request-timeout")


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "X: a\r\n b\r\nX:\x0bb\r\n",
        "Host: other\r\n",
    ],
)
async def test_a_request_with_two_meanings_is_refused(port: int, lines: str) -> None:
    raw = f"POST {TURNS} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n{{}}".encode()
    answer = await ask_raw(port, raw, "POST")
    assert answer.status == 400


@pytest.mark.proves("P-HTTP-16")
async def test_a_websocket_is_refused_in_words(port: int) -> None:
    upgrade = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13")]
    answer = await ask(port, "GET", EVENTS, [*upgrade, ("Sec-WebSocket-Key", "x" * 22 + "==")])
    assert (answer.status, answer.code) == (400, "upgrade-not-supported")


@pytest.mark.proves("P-HTTP-16")
async def test_http_2_is_refused(port: int) -> None:
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.events import ResponseReceived, StreamEnded

    h2 = H2Connection(H2Configuration(client_side=True))
    h2.initiate_connection()
    headers = [(":method", "GET"), (":path", EVENTS), (":scheme", "http"), (":authority", "x")]
    h2.send_headers(1, headers, end_stream=True)
    async with connection(port, h2.data_to_send()) as opened:
        events: list[object] = []
        async with asyncio.timeout(5):
            while not any(isinstance(event, StreamEnded) for event in events):
                events += h2.receive_data(await opened.reader.read(65_536))
    (response,) = [event for event in events if isinstance(event, ResponseReceived)]
    assert dict(response.headers or [])[b":status"] == b"505"


async def test_the_page_of_this_very_server_may_call_it(port: int) -> None:
    origin = ("Origin", f"http://127.0.0.1:{port}")
    assert (await post(port, "/v1/sessions", {}, origin)).status == 201


async def test_a_refused_post_leaves_the_connection_fit_for_the_next_request(port: int) -> None:
    async with exchange(port, "GET", "/nothing") as opened:
        await opened.body()
        opened.writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" in await asyncio.wait_for(opened.reader.readline(), 5)
