"""The page, the description of the API, health and metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from edge.core import event as types
from edge.core.errors import JournalUnavailable, RuntimeUnavailable
from edge.web.app import build_app
from edge.web.openapi import OPENAPI
from tests.edge.web.scripted_registry import ScriptedRegistry
from tests.support.live_edge import parts_for

STATIC = Path(__file__).parents[3] / "edge" / "static"
NOT_DESCRIBED = {"/", "/static/<path:name>", "/metrics", "/openapi.json"}


async def get(path: str, registry: ScriptedRegistry | None = None) -> Any:
    app = build_app(parts_for(registry or ScriptedRegistry()))
    return await app.test_client().get(path, headers={"Host": "localhost"})


async def test_the_page_comes_with_a_policy_that_runs_nothing_else() -> None:
    response = await get("/")
    assert response.content_type == "text/html; charset=utf-8"
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'" in policy
    assert "unsafe" not in policy
    assert response.headers["Cache-Control"] == "no-cache"
    text = await response.get_data(as_text=True)
    assert not re.search(
        r"<script(?! type=\"module\" src=\"/static/)|style=|\son\w+=|https?:", text
    )


@pytest.mark.parametrize(
    "name", ["nothing.js", "../config.py", "unbroken", "unbroken/../index.html"]
)
async def test_a_file_that_the_page_does_not_have_is_not_there(name: str) -> None:
    assert (await get(f"/static/{name}")).status_code == 404


FILES = {
    str(path.relative_to(STATIC)): path.read_bytes() for path in STATIC.rglob("*") if path.is_file()
}


@pytest.mark.parametrize("name", sorted(FILES))
async def test_every_file_of_the_page_is_served_with_its_type(name: str) -> None:
    response = await get(f"/static/{name}")
    assert response.status_code == 200
    assert await response.get_data(as_text=False) == FILES[name]
    kinds = {
        "html": "text/html",
        "css": "text/css",
        "js": "text/javascript",
        "json": "application/json",
        "svg": "image/svg+xml",
        "ts": "text/plain",
    }
    assert response.mimetype == kinds[name.rpartition(".")[2]]


def test_the_page_takes_nothing_from_elsewhere() -> None:
    for content in FILES.values():
        code = content.replace(b"http://www.w3.org/2000/svg", b"")
        assert b"://" not in code.replace(b"https://agents.example", b"")


def test_the_page_never_makes_markup_of_text() -> None:
    for path in STATIC.rglob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", path.read_text()
        )


def test_nothing_on_the_page_stands_still_to_wait() -> None:
    for path in STATIC.rglob("*.js"):
        assert not re.search(r"XMLHttpRequest|Atomics|alert\(|confirm\(|prompt\(", path.read_text())


def test_the_page_knows_every_event_type() -> None:
    named = re.findall(
        r'"(\w+)"', (STATIC / "unbroken" / "view.js").read_text().partition("]);")[0]
    )
    ours = [
        value for name, value in vars(types).items() if name.isupper() and isinstance(value, str)
    ]
    assert sorted(named) == sorted(ours)


async def test_the_description_names_exactly_the_routes() -> None:
    app = build_app(parts_for(ScriptedRegistry()))
    routes = {
        (re.sub(r"<(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        for method in rule.methods or ()
    }
    described = {(path, method) for path, item in OPENAPI["paths"].items() for method in item}
    assert {route for route in routes if route[0] not in NOT_DESCRIBED} == described
    served = await (await get("/openapi.json")).get_json()
    assert served == json.loads(json.dumps(OPENAPI))


def test_every_reference_in_the_description_has_its_schema() -> None:
    text = json.dumps(OPENAPI)
    used = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert used == set(OPENAPI["components"]["schemas"])


async def test_a_live_process_is_healthy_and_a_ready_one_ready() -> None:
    assert await (await get("/healthz")).get_json() == {"status": "ok"}
    assert await (await get("/readyz")).get_json() == {"status": "ready"}


@pytest.mark.parametrize(
    ("registry", "code"),
    [
        (ScriptedRegistry(draining=True), "draining"),
        (ScriptedRegistry(failure=JournalUnavailable()), "journal-unavailable"),
        (ScriptedRegistry(failure=RuntimeUnavailable()), "runtime-unavailable"),
    ],
)
async def test_an_edge_that_cannot_serve_is_alive_and_not_ready(
    registry: ScriptedRegistry, code: str
) -> None:
    assert (await get("/healthz", registry)).status_code == 200
    response = await get("/readyz", registry)
    assert response.status_code == 503
    assert (await response.get_json())["type"] == f"urn:unbroken:problem:{code}"


async def test_metrics_are_plain_text() -> None:
    response = await get("/metrics")
    assert response.content_type.startswith("text/plain")
    assert "unbroken_streams 0" in (await response.get_data(as_text=True)).splitlines()
