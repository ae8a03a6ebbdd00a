"""Tokens through a real edge over real sockets: who is let in, and what everybody else is told."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Mapping

import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from edge.web.app import _routes
from edge.web.problems import Refused
from tests.support.http_client import Answer, ask
from tests.support.issuer import (
    AUDIENCE,
    ISSUER,
    Issuer,
    bearer,
    claims,
    private_key,
    token,
)
from tests.support.live_edge import LiveEdge, live_edge, parts_for
from tests.support.scripted_runtime import ScriptedRuntime

JSON = ("Content-Type", "application/json")
INVALID = (401, "invalid-token", 'Bearer error="invalid_token"')
EXPIRED = (401, "token-expired", 'Bearer error="invalid_token"')
UNKNOWN = (401, "unauthenticated", "Bearer")


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with Issuer().serve() as serving:
        yield serving


@pytest_asyncio.fixture
async def edge(issuer: Issuer) -> AsyncIterator[LiveEdge]:
    async with live_edge(ScriptedRuntime(), authenticator=issuer.authenticator()) as running:
        yield running


async def create(edge: LiveEdge, *headers: tuple[str, str]) -> Answer:
    return await ask(edge.port, "POST", "/v1/sessions", [JSON, *headers], b"{}")


async def refusals(
    edge: LiveEdge, credentials: Mapping[str, str]
) -> dict[str, tuple[int, str, str]]:
    """Return what whoever brings each of them is told: status, code and challenge."""
    answers = {name: await create(edge, ("Authorization", c)) for name, c in credentials.items()}
    return {
        name: (answer.status, answer.code, answer.headers["www-authenticate"])
        for name, answer in answers.items()
    }


def forged(head: Mapping[str, object], secret: bytes) -> str:
    """Return a token whose signature is an HMAC, as no library would make one with a public key."""
    signed = ".".join(base64url(json.dumps(part).encode()) for part in (head, claims()))
    return f"{signed}.{base64url(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


def base64url(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


@pytest.mark.proves("P-HTTP-17")
@pytest.mark.parametrize("key", ["rsa-1", "ec-1"])
async def test_a_token_that_holds_lets_its_user_in(edge: LiveEdge, key: str) -> None:
    answer = await create(edge, bearer(token(key)))
    assert answer.status == 201
    target = f"/v1/sessions/{answer.json['session_id']}"
    again = bearer(token("rsa-1", auth_time=int(time.time()), nonce="n"))
    assert (await ask(edge.port, "GET", target, [again])).status == 200
    scheme = ("authorization", f"bearer {token()}")
    assert (await ask(edge.port, "GET", target, [scheme])).status == 200


@pytest.mark.proves("P-HTTP-17")
async def test_who_brings_no_token_is_asked_for_one(edge: LiveEdge, issuer: Issuer) -> None:
    without = await create(edge)
    assert (without.status, without.code) == (401, "unauthenticated")
    assert without.headers["www-authenticate"] == "Bearer"
    others = {"basic": "Basic YTpi", "nothing": "Bearer", "raw": token(), "empty": "Bearer  "}
    assert await refusals(edge, others) == dict.fromkeys(others, UNKNOWN)
    assert issuer.fetches == 0


@pytest.mark.proves("P-HTTP-17")
async def test_no_call_of_the_api_is_answered_without_a_token(edge: LiveEdge) -> None:
    calls = [(method, path) for method, path, _ in _routes(parts_for(edge.registry))]
    asked = [(method, re.sub("<.*?>", "x" * 16, path)) for method, path in calls]
    answers = {(m, p): (await ask(edge.port, m, p, [JSON], b"{}")).status for m, p in asked}
    closed = {call for call, status in answers.items() if status == 401}
    assert closed == {call for call in answers if call[1].startswith("/v1/")}


@pytest.mark.proves("P-HTTP-18")
async def test_what_is_no_token_of_an_issuers_kind_is_refused_before_a_key_is_looked_for(
    edge: LiveEdge, issuer: Issuer
) -> None:
    pem = (
        private_key("rsa-1")
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    kid = {"kid": "rsa-1"}
    texts = {
        "no JWT": "hunter2",
        "three empty parts": "..",
        "too long": "a" * 12_000,
        "two tokens": f"{token()} {token()}",
        "unsigned": forged({"alg": "none", **kid}, b"").rpartition(".")[0] + ".",
        "signed with the public key": forged({"alg": "HS256", **kid}, pem),
        "another algorithm": jwt.encode(claims(), private_key("rsa-1"), "PS256", kid),
        "no object": f"{base64url(b'[1]')}.e30.x",
        "deep": f"{base64url(b'[' * 7_500)}.e30.x",
    }
    brought = {name: f"Bearer {text}" for name, text in texts.items()}
    assert await refusals(edge, brought) == dict.fromkeys(brought, INVALID)
    assert issuer.fetches == 0


@pytest.mark.proves("P-HTTP-18")
async def test_a_token_of_anybody_else_or_for_anybody_else_is_refused(edge: LiveEdge) -> None:
    now = int(time.time())
    tokens = {
        "another audience": token(aud="other"),
        "a list of audiences": token(aud=[AUDIENCE]),
        "no audience": token(aud=None),
        "another issuer": token(iss=f"{ISSUER}/"),
        "no issuer": token(iss=None),
        "of tomorrow": token(iat=now + 60),
        "of no day": token(iat=None),
        "not valid yet": token(nbf=now + 60),
        "signed in tomorrow": token(auth_time=now + 60),
        "signed in some day": token(auth_time="yesterday"),
        "no end": token(exp=None),
        "an endless end": token(exp=float("inf")),
        "nobody": token(sub=""),
        "no subject": token(sub=None),
        "a number for a subject": token(sub=7),
        "a long subject": token(sub="a" * 129),
        "a subject that is no text": token(sub="\ud800"),
        "a subject of two lines": token(sub="a\nb"),
        "another key's signature": token("rsa-2", kid="rsa-1"),
        "a key of another kind": token("rsa-1", kid="ec-1"),
        "changed": f"{token()[:-8]}AAAAAAAA",
    }
    brought = {name: f"Bearer {text}" for name, text in tokens.items()}
    assert await refusals(edge, brought) == dict.fromkeys(brought, INVALID)


@pytest.mark.proves("P-HTTP-18")
async def test_an_expired_token_is_told_apart_and_clocks_may_differ_by_ten_seconds(
    edge: LiveEdge,
) -> None:
    now = int(time.time())
    expired = {"expired": f"Bearer {token(exp=now - 60)}"}
    assert await refusals(edge, expired) == {"expired": EXPIRED}
    for near in (token(exp=now - 3), token(iat=now + 8), token(sub="a" * 128)):
        assert (await create(edge, bearer(near))).status == 201


@pytest.mark.proves("P-HTTP-16")
async def test_credentials_that_could_be_read_in_two_ways_or_by_others_are_refused(
    edge: LiveEdge,
) -> None:
    good = token()
    twice = await create(edge, bearer(good), bearer(good))
    assert (twice.status, twice.code) == (400, "duplicate-header")
    for name in ("access_token", "token"):
        target = f"/v1/sessions?{name}={good}"
        answer = await ask(edge.port, "POST", target, [JSON, bearer(good)], b"{}")
        assert (answer.status, answer.code) == (400, "credentials-in-url")
    huge = await create(edge, bearer("a" * 20_000))
    assert (huge.status, huge.code) == (431, "headers-too-large")


@pytest.mark.proves("P-HTTP-3", "P-HTTP-17")
async def test_another_users_session_looks_exactly_as_one_that_does_not_exist(
    edge: LiveEdge,
) -> None:
    eve = bearer(token("ec-1", sub="eve"))
    session_id = (await create(edge, bearer(token()))).json["session_id"]
    other, body = [JSON, eve, ("Idempotency-Key", "k" * 16)], b'{"input":"Hi"}'
    for method, rest, sent in [
        ("GET", "", b""),
        ("GET", "/events", b""),
        ("POST", "/turns", body),
        ("POST", "/turns/t1/cancel", b"{}"),
        ("POST", "/turns/t1/tool-calls/c1", b'{"approve":true}'),
    ]:
        foreign, unknown = [
            await ask(edge.port, method, f"/v1/sessions/{name}{rest}", other, sent)
            for name in (session_id, "u" * 24)
        ]
        assert foreign.code == "session-not-found"
        assert (
            (foreign.status, foreign.body) == (unknown.status, unknown.body) == (404, foreign.body)
        )


@pytest.mark.proves("P-HTTP-1", "P-HTTP-18")
async def test_nothing_of_a_token_is_echoed_or_logged(
    edge: LiveEdge, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hunter2hunter2"
    texts = [secret, token(kid=secret), token(sub=secret, aud=secret), token(exp=1, jti=secret)]
    issuer.down = True
    texts.append(token(kid=f"{secret}-of-a-new-key"))
    for text in texts:
        answer = await create(edge, bearer(text))
        said = f"{answer.headers}{answer.body!r}"
        assert answer.status in (401, 503)
        assert not any(part in said for part in (secret, *text.split(".")))
    assert secret not in caplog.text
    assert "eyJ" not in caplog.text  # how every token begins


@pytest.mark.proves("P-HTTP-19")
async def test_a_new_key_is_taken_when_it_is_published_and_a_withdrawn_one_no_more(
    issuer: Issuer,
) -> None:
    issuer.published = ["rsa-1"]
    authenticator = issuer.authenticator()
    async with live_edge(ScriptedRuntime(), authenticator=authenticator) as edge:

        async def status(key: str) -> int:
            return (await create(edge, bearer(token(key)))).status

        assert (await status("rsa-1"), await status("ec-1")) == (201, 401)
        issuer.published = ["ec-1"]
        authenticator._keys._next_at = 0.0  # half a minute later
        assert (await status("ec-1"), await status("rsa-1")) == (201, 401)
        assert issuer.fetches == 2


@pytest.mark.proves("P-HTTP-19")
async def test_a_hundred_who_come_at_once_cost_one_fetch_of_the_keys(
    edge: LiveEdge, issuer: Issuer
) -> None:
    answers = await asyncio.gather(*(create(edge, bearer(token("ec-1"))) for _ in range(100)))
    assert {answer.status for answer in answers} == {201}
    assert issuer.fetches == 1


@pytest.mark.proves("P-HTTP-19")
async def test_a_thousand_names_of_keys_that_do_not_exist_cost_one_fetch_of_the_keys(
    edge: LiveEdge, issuer: Issuer
) -> None:
    authorizations = [f"Bearer {token('ec-1', kid=f'k{n}')}" for n in range(1_000)]
    authenticator = issuer.authenticator()
    for authorization in authorizations[:20]:
        assert await refusals(edge, {"unknown": authorization}) == {"unknown": INVALID}
    assert issuer.fetches == 1
    for authorization in authorizations:
        with pytest.raises(Refused, match="invalid-token"):
            await authenticator.authenticate([authorization])
    assert issuer.fetches == 2


@pytest.mark.proves("P-HTTP-19")
async def test_who_cannot_be_checked_is_told_to_come_back_and_let_in_when_the_keys_are_there(
    issuer: Issuer,
) -> None:
    issuer.down = True
    authenticator = issuer.authenticator()
    async with live_edge(ScriptedRuntime(), authenticator=authenticator) as edge:
        refused = await create(edge, bearer(token()))
        assert (refused.status, refused.code) == (503, "auth-keys-unavailable")
        assert refused.headers["retry-after"] == "5"
        assert "www-authenticate" not in refused.headers
        issuer.down = False
        authenticator._keys._next_at = 0.0  # five seconds later
        assert (await create(edge, bearer(token()))).status == 201
        issuer.down = True
        assert (await create(edge, bearer(token()))).status == 201
