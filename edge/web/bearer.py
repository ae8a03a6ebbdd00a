"""Says who calls by the token that they bring: a JWT of one issuer for one audience (OpenID Connect).

Knows nothing of how keys are had. PyJWT reads and checks tokens; here is only what it leaves to its caller. What
is wrong with a token is neither told nor logged: the texts of PyJWT's errors may quote it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import jwt
from jwt.exceptions import InvalidSubjectError

from edge.ports import Clock, Principal
from edge.web.problems import Refused
from edge.web.signing_keys import SigningKeys

ALGORITHMS = ("RS256", "ES256")
"""What issuers sign with. Never one of a shared secret: the public key would serve as that."""
LEEWAY_SECONDS = 10
"""How far the clocks of issuer and edge may be apart."""
MAX_UID_LENGTH = 128

_BEARER = re.compile(r"Bearer +(\S.*)", re.ASCII | re.IGNORECASE)


class BearerAuthenticator:
    """Lets in whoever brings a token that holds, as the user that its ``sub`` names."""

    open_to_all = False

    def __init__(self, issuer: str, audience: str, keys: SigningKeys, clock: Clock) -> None:
        self._issuer = issuer
        self._audience = audience
        self._keys = keys
        self._clock = clock

    async def authenticate(self, authorization: Sequence[str]) -> Principal:
        """Return the user.

        Raises:
            Refused: ``unauthenticated``, ``invalid-token``, ``token-expired`` or ``auth-keys-unavailable``.
        """
        bearer = _BEARER.fullmatch(authorization[0]) if authorization else None
        if bearer is None:
            raise Refused("unauthenticated")
        try:
            return self._principal(await self._claims(bearer[1]))
        except jwt.ExpiredSignatureError:
            raise Refused("token-expired") from None
        except jwt.PyJWTError:
            raise Refused("invalid-token") from None

    async def _claims(self, token: str) -> Mapping[str, Any]:
        header = jwt.get_unverified_header(token)
        if header.get("alg") not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError  # before a key is looked for
        key = await self._keys.find(header.get("kid", ""))
        if key is None:
            raise jwt.InvalidKeyError
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key,
            ALGORITHMS,
            {
                "require": ["aud", "exp", "iat", "iss", "sub"],
                "strict_aud": True,
                "enforce_minimum_key_length": True,
            },
            audience=self._audience,
            issuer=self._issuer,
            leeway=LEEWAY_SECONDS,
        )
        return claims

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        """Check what PyJWT does not, and return whom the claims name."""
        uid, signed_in_at = claims["sub"], claims.get("auth_time", 0)
        # Printable: a store, a log and the runtime must all be able to write it.
        if not (0 < len(uid) <= MAX_UID_LENGTH and uid.isprintable()):
            raise InvalidSubjectError
        latest = self._clock.now_ms() / 1000 + LEEWAY_SECONDS
        if not (isinstance(signed_in_at, int | float) and signed_in_at <= latest):
            raise jwt.ImmatureSignatureError
        # With the leeway: a stream that ends then is not let in again with the same token.
        return Principal(uid, expires_at_ms=(int(claims["exp"]) + LEEWAY_SECONDS) * 1000)
