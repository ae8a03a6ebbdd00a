"""The keys of tokens: when they are fetched, how long they are believed, and who waits."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from jwt import PyJWK, PyJWKClientError

from edge.web import signing_keys
from edge.web.problems import Refused
from edge.web.signing_keys import (
    COOL_DOWN_SECONDS,
    FRESH_SECONDS,
    RETRY_SECONDS,
    USABLE_SECONDS,
    SigningKeys,
    fetcher,
)
from tests.support.http_client import PATIENCE_SECONDS
from tests.support.issuer import Issuer, public_jwk

pytestmark = pytest.mark.proves("P-HTTP-19")


@dataclass
class Published:
    """Keys that a test publishes, and a clock that it moves."""

    names: list[str] = field(default_factory=lambda: ["ec-1"])
    failure: Exception | None = None
    fetches: int = 0
    now_seconds: float = 1_000.0
    gate: threading.Event | None = None

    def __post_init__(self) -> None:
        self.keys = SigningKeys(self.fetch, lambda: self.now_seconds)

    def fetch(self) -> Sequence[PyJWK]:
        self.fetches += 1
        if self.gate is not None:
            assert self.gate.wait(PATIENCE_SECONDS)
        if self.failure is not None:
            raise self.failure
        return [PyJWK(public_jwk(name)) for name in self.names]

    async def knows(self, name: str) -> bool:
        key = await self.keys.find(name)
        assert key is None or key.key_id == name
        return key is not None

    async def settled(self) -> None:
        """Wait for the fetch that nobody waits for."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.keys._fetching is not None:
                await asyncio.wait([self.keys._fetching])


async def test_keys_are_fetched_once_for_as_long_as_they_are_fresh() -> None:
    published = Published()
    for passed_seconds in (0, 1, COOL_DOWN_SECONDS, FRESH_SECONDS):
        published.now_seconds = 1_000.0 + passed_seconds
        assert await published.knows("ec-1")
    assert published.fetches == 1


async def test_a_new_key_is_found_when_it_is_named_but_no_sooner_than_a_cool_down_allows() -> None:
    published = Published()
    assert await published.knows("ec-1")
    published.names = ["ec-2"]
    published.now_seconds += COOL_DOWN_SECONDS - 1
    assert not await published.knows("ec-2")
    published.now_seconds += 1
    assert await published.knows("ec-2")
    assert not await published.knows("ec-1")  # withdrawn
    assert published.fetches == 2


async def test_nobody_waits_for_newer_keys_who_names_one_that_is_at_hand() -> None:
    published = Published()
    assert await published.knows("ec-1")
    published.names, published.gate = ["ec-2"], threading.Event()
    published.now_seconds += FRESH_SECONDS + 1
    assert await published.knows("ec-1")
    published.gate.set()
    await published.settled()
    assert published.fetches == 2
    assert not await published.knows("ec-1")


@pytest.mark.parametrize(
    "failure", [PyJWKClientError("hunter2"), ConnectionResetError("x"), ValueError("no JSON")]
)
async def test_old_keys_are_believed_for_a_day_while_no_newer_can_be_had(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    published = Published()
    assert await published.knows("ec-1")
    published.failure = failure
    published.now_seconds += USABLE_SECONDS
    assert await published.knows("ec-1")
    await published.settled()
    published.now_seconds += RETRY_SECONDS
    with pytest.raises(Refused, match="auth-keys-unavailable"):
        await published.knows("ec-1")
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


async def test_a_name_that_is_not_at_hand_cannot_be_judged_while_the_keys_are_away() -> None:
    published = Published()
    assert await published.knows("ec-1")
    published.failure = PyJWKClientError("down")
    published.now_seconds += COOL_DOWN_SECONDS
    for _ in range(3):
        with pytest.raises(Refused, match="auth-keys-unavailable"):
            await published.knows("ec-2")
        assert await published.knows("ec-1")
    assert published.fetches == 2


async def test_an_address_that_fails_is_asked_again_after_five_seconds() -> None:
    published = Published(failure=PyJWKClientError("down"))
    for _ in range(50):
        with pytest.raises(Refused, match="auth-keys-unavailable"):
            await published.knows("ec-1")
    assert published.fetches == 1
    published.failure = None
    published.now_seconds += RETRY_SECONDS
    assert await published.knows("ec-1")


async def test_a_caller_who_leaves_takes_the_fetch_from_nobody() -> None:
    published = Published(gate=threading.Event())
    first, second = [asyncio.create_task(published.knows("ec-1")) for _ in range(2)]
    while published.keys._fetching is None:
        await asyncio.sleep(0)
    first.cancel()
    assert published.gate is not None
    published.gate.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await second
    assert published.fetches == 1


async def test_an_address_that_never_answers_is_waited_for_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signing_keys, "FETCH_SECONDS", 0.05)
    gate = threading.Event()
    published = Published(gate=gate)
    with pytest.raises(Refused, match="auth-keys-unavailable"):
        await published.knows("ec-1")
    gate.set()


@pytest.mark.parametrize(
    "body", [b"", b"<h1>Hotel</h1>", b"[]", b'{"keys":[]}', b'{"keys":[{"kty":"oct","k":"AA"}]}']
)
async def test_what_is_no_set_of_public_keys_is_as_good_as_none(body: bytes) -> None:
    async with Issuer().serve() as issuer:
        issuer.body = body
        keys = SigningKeys(fetcher(issuer.url), lambda: 0.0)
        with pytest.raises(Refused, match="auth-keys-unavailable"):
            await keys.find("ec-1")


async def test_keys_that_cannot_be_used_leave_the_others_usable() -> None:
    async with Issuer().serve() as issuer:
        odd = [{"kty": "RSA", "kid": "odd"}, "no key", {"kty": "oct", "k": "AA", "kid": "odd"}]
        issuer.body = json.dumps({"keys": [*odd, public_jwk("ec-1")]}).encode()
        keys = SigningKeys(fetcher(issuer.url), lambda: 0.0)
        assert await keys.find("ec-1") is not None
