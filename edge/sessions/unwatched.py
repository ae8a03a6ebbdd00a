"""A turn that is to end with its viewers: the grace period after the last one left.

Knows nothing of why nobody watches. Viewers of other edges count: they leave a mark in the head.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from edge.core.errors import JournalUnavailable
from edge.core.session import Session
from edge.sessions.services import Services


class Unwatched:
    """Counts the grace period of one session, and ends its turn when it is over."""

    def __init__(
        self,
        services: Services,
        session_id: str,
        *,
        unwatched: Callable[[], bool],
        cancel: Callable[[str], Coroutine[Any, Any, object]],
    ) -> None:
        """``unwatched``: whether a turn runs here that has no viewer here; ``cancel`` ends it."""
        self._services = services
        self._session_id = session_id
        self._unwatched = unwatched
        self._cancel = cancel
        self._timer: asyncio.TimerHandle | None = None

    def look(self, session: Session) -> None:
        """Start the grace period anew, if the turn is of that kind and nobody watches it."""
        self.stop()
        turn = session.turn
        ends = turn is not None and not turn.finished and turn.on_disconnect == "cancel"
        if ends and self._unwatched():
            seconds = self._services.settings.disconnect_grace_seconds
            self._timer = self._services.later(
                seconds, lambda: self._services.spawn(self._judge(session))
            )

    def stop(self) -> None:
        """Somebody watches again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _judge(self, session: Session) -> None:
        grace = self._services.settings.disconnect_grace_seconds
        try:
            head = await self._services.journal.head(self._session_id)
            seen = head is None or head.watched_seconds_ago < grace
            if not seen and self._unwatched() and session.turn is not None:
                self._services.telemetry.count("turns_cancelled_unwatched")
                await self._cancel(session.turn.turn_id)
                return
        except JournalUnavailable:
            pass  # nobody can be asked now: the grace period begins anew
        self.look(session)
