"""The open door: everybody who can connect is the one local user.

Knows nothing of tokens (``edge.web.bearer``). An edge that is open to all must not leave loopback, and
``edge.main`` refuses to start one that would.
"""

from __future__ import annotations

from collections.abc import Sequence

from edge.ports import Principal


class OpenLocalAuthenticator:
    """Lets everybody in as the same user; whatever ``Authorization`` says is not looked at."""

    open_to_all = True

    async def authenticate(self, authorization: Sequence[str]) -> Principal:
        """Return the local user."""
        del authorization
        return Principal(uid="local")
