"""The public keys of one issuer of tokens: fetched when one is named that is not at hand, and kept.

Knows nothing of tokens. ``PyJWKClient`` fetches and reads the set, but its caches are not used: they hold a
thread for every request that waits, ask a URL that is down once more for each of them, and drop the old
keys although no newer can be had.

- One fetch at a time, for everybody who waits for it; nobody waits who names a key that is at hand.
- Names that do not exist cost one fetch in ``COOL_DOWN_SECONDS``, however many they are.
- Nothing is deleted because of a failure: an old set is believed until a newer one is there, or for a day.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from math import inf

from jwt import PyJWK, PyJWKClient, PyJWTError

from edge.web.problems import Refused

FRESH_SECONDS = 6 * 3600.0
"""How old keys may be before others are looked for: a key that was withdrawn is believed as long."""
USABLE_SECONDS = 24 * 3600.0
"""How long keys are believed while no newer can be had: longer than any outage that somebody works on."""
COOL_DOWN_SECONDS = 30.0
"""Between two fetches: anybody may name keys that do not exist."""
RETRY_SECONDS = 5.0
"""The same after a fetch that failed, and what clients are told to wait."""
FETCH_SECONDS = 3.0

_log = logging.getLogger(__name__)


def fetcher(url: str) -> Callable[[], Sequence[PyJWK]]:
    """Return what fetches the keys at ``url``; it blocks, and raises ``PyJWTError`` and more."""
    return PyJWKClient(url, cache_jwk_set=False, timeout=FETCH_SECONDS).get_signing_keys


class SigningKeys:
    """The keys by their names; ``fetch`` blocks, and ``now`` is any clock that only goes forward."""

    def __init__(self, fetch: Callable[[], Sequence[PyJWK]], now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._now = now
        self._keys: Mapping[str | None, PyJWK] = {}
        self._fetched_at = -inf
        self._next_at = -inf  # no fetch before
        self._reached = True  # whether the newest fetch brought keys
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, name: str) -> PyJWK | None:
        """Return the key of that name; ``None`` if the issuer has none.

        Raises:
            Refused: ``auth-keys-unavailable``, when nobody can say.
        """
        age_seconds = self._now() - self._fetched_at
        if age_seconds > USABLE_SECONDS:
            self._keys = {}
        if name in self._keys and age_seconds <= FRESH_SECONDS:
            return self._keys[name]
        fetching = self._refresh()
        if name not in self._keys and fetching is not None:
            await asyncio.shield(fetching)  # it is everybody's, and goes on when one caller leaves
        if name not in self._keys and not self._reached:
            raise Refused("auth-keys-unavailable")
        return self._keys.get(name)

    def _refresh(self) -> asyncio.Task[None] | None:
        """Return the fetch under way, or one that begins now, or ``None`` if it is too early for one."""
        if self._fetching is None and self._now() >= self._next_at:
            # In a context of its own: a copy of the caller's would keep that request in memory.
            self._fetching = asyncio.create_task(self._fetch_all(), context=Context())
        return self._fetching

    async def _fetch_all(self) -> None:
        self._next_at = self._now() + RETRY_SECONDS
        self._reached = False
        try:
            # urllib bounds each of its steps, but not the whole.
            async with asyncio.timeout(FETCH_SECONDS):
                keys = await asyncio.to_thread(self._fetch)
        except (PyJWTError, OSError, ValueError) as error:
            _log.warning("the keys of tokens cannot be fetched", exc_info=error)
        else:
            self._keys = {key.key_id: key for key in keys}
            self._fetched_at = self._now()
            self._next_at = self._fetched_at + COOL_DOWN_SECONDS
            self._reached = True
        finally:
            self._fetching = None
