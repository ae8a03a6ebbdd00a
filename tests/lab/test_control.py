"""The lab's control calls: who may ask, and what is answered to nonsense."""

from __future__ import annotations

from typing import Any, cast

import pytest
from quart import Quart

from tests.lab.control import build_app
from tests.lab.settings import Settings
from tests.lab.store import StoreBusy
from tests.lab.troubles import Troubles

HERE = {"Host": "127.0.0.1:8080"}
STRUCK = {"session": "", "on": True}


class NotedTroubles:
    """Writes down what it is asked to do."""

    def __init__(self) -> None:
        self.struck: list[tuple[str, bool]] = []
        self.lasting = {"pause": False}

    async def strike(self, trouble: str, session_id: str, *, on: bool) -> None:
        if trouble == "fire":
            raise ValueError
        if trouble == "store":
            raise StoreBusy
        self.struck.append((trouble, on))

    async def look(self, session_id: str, chat: str) -> dict[str, Any]:
        if ".." in chat:
            raise ValueError
        return {"durable": session_id, "naive": chat}


@pytest.fixture
def troubles() -> NotedTroubles:
    return NotedTroubles()


@pytest.fixture
def app(troubles: NotedTroubles) -> Quart:
    return build_app(cast(Troubles, troubles), Settings())


async def test_the_page_its_files_and_the_client_library_are_served(app: Quart) -> None:
    client = app.test_client()
    for path in ("/", "/lab/lab.js", "/lab/lab.css", "/static/unbroken/unbroken.js"):
        answer = await client.get(path, headers=HERE)
        assert answer.status_code == 200, path
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    for path in ("/lab/../control.py", "/lab/", "/lab/lab.py", "/static/chat.js"):
        assert (await client.get(path, headers=HERE)).status_code == 404, path


async def test_a_trouble_is_passed_on_and_what_lasts_is_told(
    app: Quart, troubles: NotedTroubles
) -> None:
    answer = await app.test_client().post("/api/troubles/cut", json=STRUCK, headers=HERE)

    assert (await answer.get_json()) == {"troubles": {"pause": False}}
    assert troubles.struck == [("cut", True)]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
async def test_no_other_page_may_do_anything(
    app: Quart, troubles: NotedTroubles, headers: dict[str, str], status: int
) -> None:
    given = {"Content-Type": "application/json", **HERE, **headers}
    answer = await app.test_client().post(
        "/api/troubles/kill", data=b'{"session": "", "on": true}', headers=given
    )

    assert answer.status_code == status
    assert troubles.struck == []


@pytest.mark.parametrize("body", [[], {}, {"session": "x"}, "cut", None])
async def test_nonsense_is_refused(app: Quart, troubles: NotedTroubles, body: object) -> None:
    answer = await app.test_client().post("/api/troubles/cut", json=body, headers=HERE)

    assert answer.status_code == 400
    assert troubles.struck == []


@pytest.mark.parametrize(("trouble", "status"), [("fire", 400), ("store", 503)])
async def test_what_cannot_be_done_is_told(app: Quart, trouble: str, status: int) -> None:
    answer = await app.test_client().post(f"/api/troubles/{trouble}", json=STRUCK, headers=HERE)

    assert answer.status_code == status


async def test_conversations_are_looked_up_by_names_that_are_names(app: Quart) -> None:
    client = app.test_client()
    answer = await client.get("/api/look?session=s&chat=c", headers=HERE)
    assert await answer.get_json() == {"durable": "s", "naive": "c"}
    assert (await client.get("/api/look?session=s&chat=..", headers=HERE)).status_code == 400
