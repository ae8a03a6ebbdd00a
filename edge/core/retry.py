"""When the next attempt of a turn may start, and when there shall be none.

Knows nothing of why the last one ended. Attempts are budgeted by progress, not by clock: the pause grows with
every attempt that brought nothing, and ten of those in a row end the turn.
"""

from __future__ import annotations

from edge.core.patience import Chance, WriterSettings


class Retry:
    """The plan for the next attempt."""

    def __init__(self, settings: WriterSettings, chance: Chance, now_seconds: float) -> None:
        self._settings = settings
        self._chance = chance
        self._at: float | None = now_seconds
        self.reason = "runtime_unavailable"
        """What the turn ends with if the budget is spent."""

    @property
    def at(self) -> float | None:
        """Monotonic time of the next attempt; ``None`` until ``due`` has reckoned it."""
        return self._at

    def plan(self, reason: str, at: float | None = None) -> None:
        """Plan an attempt at a time, or for when ``due`` is first asked plus a pause."""
        self.reason = reason
        self._at = at

    def spent(self, barren_attempts: int) -> bool:
        """Whether the budget is spent."""
        return barren_attempts >= self._settings.max_barren_attempts

    def due(self, barren_attempts: int, now_seconds: float) -> bool:
        """Whether the next attempt may start now. Asked only once the last one is wholly accounted for."""
        if self._at is None:
            self._at = now_seconds + self._pause(barren_attempts)
        return now_seconds >= self._at

    def _pause(self, barren_attempts: int) -> float:
        if not barren_attempts:
            return 0.0
        doubled = self._settings.backoff_base_seconds * 2.0 ** (barren_attempts - 1)
        spread = 0.5 + self._chance.random() / 2
        return min(doubled, self._settings.backoff_limit_seconds) * spread
