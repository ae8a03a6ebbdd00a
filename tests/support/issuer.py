"""An issuer of tokens on loopback: real keys and tokens at real addresses, with whatever is to be in them.

Knows nothing of what an edge makes of them. Keys are made once for all tests, because that takes its time.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from edge.main import WallClock
from edge.web.bearer import LEEWAY_SECONDS, BearerAuthenticator
from edge.web.signing_keys import SigningKeys, fetcher
from tests.support.http_client import PATIENCE_SECONDS

ISSUER = "https://issuer.example/tenant"
AUDIENCE = "unbroken"

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def private_key(name: str) -> PrivateKey:
    """Return the key of that name: RSA, or of an elliptic curve where the name begins so."""
    if name.startswith("ec"):
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def public_jwk(name: str) -> dict[str, Any]:
    key = private_key(name)
    if isinstance(key, rsa.RSAPrivateKey):
        jwk = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        return {**jwk, "kid": name, "alg": "RS256", "use": "sig"}
    return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": name}


def claims(**changes: object) -> dict[str, object]:
    """Return claims that hold for an hour; ``None`` leaves one out."""
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 3_600}
    return {name: value for name, value in (usual | changes).items() if value is not None}


def token(key: str = "rsa-1", *, kid: str | None = None, **changes: object) -> str:
    """Return a token that is signed with ``key``, under its name or another."""
    private = private_key(key)
    algorithm = "RS256" if isinstance(private, rsa.RSAPrivateKey) else "ES256"
    headers = {"kid": key if kid is None else kid}
    return jwt.encode(claims(**changes), private, algorithm, headers)


def ends_in(seconds: float) -> int:
    """Return the ``exp`` of a token that an edge takes for that long yet."""
    return int(time.time() + seconds) - LEEWAY_SECONDS


def bearer(text: str) -> tuple[str, str]:
    return ("Authorization", f"Bearer {text}")


class Issuer:
    """Publishes the keys of the names in ``published``, and makes tokens for a page that asks.

    Counts who asks for keys.
    """

    def __init__(self) -> None:
        self.published = ["rsa-1", "ec-1"]
        self.fetches = 0
        self.down = False
        self.body: bytes | None = None
        self.make: Callable[[], str] = token
        self.url = self.token_url = ""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Issuer]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self.url, self.token_url = f"{origin}/keys", f"{origin}/token"
        async with server:
            yield self

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            request = await reader.readuntil(b"\r\n\r\n")
        wants_token = request.startswith(b"GET /token ")
        self.fetches += not wants_token
        if not self.down:
            body = self.make().encode() if wants_token else self._keys()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
        writer.close()

    def _keys(self) -> bytes:
        keys = {"keys": [public_jwk(name) for name in self.published]}
        return json.dumps(keys).encode() if self.body is None else self.body

    def authenticator(self) -> BearerAuthenticator:
        """Return an edge's authenticator that asks this issuer."""
        keys = SigningKeys(fetcher(self.url), time.monotonic)
        return BearerAuthenticator(ISSUER, AUDIENCE, keys, WallClock())
