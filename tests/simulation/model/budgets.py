"""The worlds that are searched to their end: how large they are, and which run searches them.

Knows nothing of how to search. The numbers of states are pinned: a change of the model shows as another number.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.model.state import Budget, Scope


@dataclass(frozen=True, slots=True)
class Size:
    """A world, and how many states it has."""

    scope: Scope
    states: int


def _alone(states: int, budget: Budget, tokens_before: int = 1, tokens_after: int = 0) -> Size:
    """Return the world of an owner that runs its agent itself."""
    return Size(
        Scope(budget=budget, tokens_before=tokens_before, tokens_after=tokens_after), states
    )


def _runtime(
    states: int, budget: Budget, *, tokens: int = 0, attempts: int = 3, turns: int = 1
) -> Size:
    """Return the world of an owner and a runtime."""
    scope = Scope(budget=budget, tokens_before=tokens, attempts=attempts, turns=turns)
    return Size(scope, states)


SMALL = (
    _alone(3_398, Budget(crash=1)),
    _alone(1_512, Budget(takeover=1)),
    _alone(9_524, Budget(drop=1, timeout=1, cancel=1)),
    _alone(2_823, Budget(timeout=1, cancel=1, redelivery=1)),
    _alone(3_946, Budget(cancel=2, handed=1)),
    _runtime(43, Budget(), tokens=1, attempts=1),
    _runtime(236, Budget(stream_break=1, suspension=1)),
    _runtime(626, Budget(suspension=1, cancel=1)),
    _runtime(671, Budget(restart=1, stream_break=1)),
    _runtime(1_216, Budget(takeover=1)),
    _runtime(1_377, Budget(), attempts=1, turns=2),
)
"""Seconds: searched at every test run."""

MIDDLE = (
    _alone(9_563, Budget(takeover=1, drop=1)),
    _alone(16_703, Budget(takeover=1, cancel=1)),
    _alone(36_017, Budget(crash=1, cancel=1)),
    _runtime(10_186, Budget(suspension=1, crash=1)),
    _runtime(4_250, Budget(suspension=1, takeover=1)),
    _runtime(9_786, Budget(stream_break=1, takeover=1)),
    _runtime(5_040, Budget(suspension=2, stream_break=2, restart=1)),
    _runtime(4_932, Budget(cancel=2, handed=1)),
    _runtime(28_318, Budget(), tokens=1, attempts=2, turns=2),
)
"""Half a minute: searched by the tests in real time."""

LARGE = (
    _alone(1_315_090, Budget(takeover=1, drop=1, timeout=1, cancel=1, redelivery=1)),
    _alone(185_452, Budget(crash=1, takeover=1, drop=1)),
    _alone(85_546, Budget(takeover=2, drop=2)),
    _alone(730_123, Budget(crash=1, takeover=1, drop=1, timeout=1)),
    _alone(1_098_121, Budget(takeover=2, timeout=1, cancel=1)),
    _alone(887_451, Budget(crash=1, takeover=1, cancel=1)),
    _alone(299_874, Budget(crash=1, drop=1, timeout=1, cancel=1)),
    _alone(4_345_342, Budget(crash=1, takeover=1, timeout=1, cancel=1)),
    _alone(1_688_083, Budget(crash=2, takeover=1, drop=1)),
    _alone(411_971, Budget(takeover=2, drop=2), tokens_before=2),
    _alone(2_467_048, Budget(crash=1, takeover=1, drop=1, cancel=1)),
    _alone(412_888, Budget(takeover=1, drop=1, timeout=1), tokens_before=2, tokens_after=1),
    _alone(3_392_651, Budget(takeover=2, drop=1, timeout=1, redelivery=1), tokens_after=1),
    _alone(532_193, Budget(takeover=1, cancel=2, handed=2)),
    _runtime(25_417, Budget(cancel=1, stream_break=1, suspension=1, restart=1)),
    _runtime(36_783, Budget(takeover=1, suspension=1, restart=1)),
    _runtime(473_977, Budget(crash=1, stream_break=1, suspension=1, restart=1)),
    _runtime(1_233_418, Budget(takeover=1, cancel=1, stream_break=1, restart=1)),
    _runtime(73_829, Budget(takeover=1, cancel=1, suspension=1)),
    _runtime(153_511, Budget(takeover=1, drop=1, suspension=1), tokens=1),
    _runtime(76_722, Budget(takeover=1, timeout=1, stream_break=1, suspension=1)),
    _runtime(130_583, Budget(crash=1, cancel=1, suspension=1), attempts=2),
    _runtime(165_268, Budget(crash=1, takeover=1, suspension=1), attempts=2),
    _runtime(53_073, Budget(takeover=1), attempts=1, turns=2),
    _runtime(1_269_198, Budget(cancel=1, stream_break=1), attempts=2, turns=2),
    _runtime(107_575, Budget(stream_break=1, suspension=1), attempts=2, turns=2),
)
"""Minutes to an hour: searched by ``python -m tests.simulation.model --all``."""
