"""When a client that is sent away shall come back."""

from __future__ import annotations

import random

import pytest

from edge.core.control import (
    Reauth,
    Reconnect,
    ReconnectReason,
    decide_expiry,
    decide_reconnect,
)


class Fixed:
    """The same luck every time."""

    def __init__(self, value: float) -> None:
        self._value = value

    def random(self) -> float:
        return self._value


LAST = 1 - 2**-53


@pytest.mark.proves("P-SSE-15")
@pytest.mark.parametrize(
    ("reason", "streams", "soonest_ms", "latest_ms"),
    [
        ("rolling", 0, 50, 500),
        ("rolling", 250, 50, 500),
        ("rolling", 800, 50, 1_600),
        ("deadline", 0, 50, 500),
        ("busy", 0, 1_000, 5_000),
        ("token_expired", 0, 50, 500),
    ],
)
def test_a_client_comes_back_soon_to_another_edge_and_later_where_nothing_is_known(
    reason: ReconnectReason, streams: int, soonest_ms: int, latest_ms: int
) -> None:
    assert decide_reconnect(reason, Fixed(0.0), streams=streams) == Reconnect(reason, soonest_ms)
    last = decide_reconnect(reason, Fixed(LAST), streams=streams)
    assert latest_ms - 1 <= last.retry_ms <= latest_ms


@pytest.mark.proves("P-SSE-21")
@pytest.mark.parametrize(
    ("left_ms", "word"),
    [
        (60_001, None),
        (60_000, Reauth(60_000)),
        (1, Reauth(1)),
        (0, Reconnect("token_expired", 50)),
        (-1, Reconnect("token_expired", 50)),
    ],
)
def test_a_stream_is_warned_a_minute_before_its_credentials_end(
    left_ms: int, word: Reauth | Reconnect | None
) -> None:
    assert decide_expiry(left_ms, Fixed(0.0)) == word


def test_the_streams_of_a_full_edge_come_back_spread() -> None:
    chance = random.Random(7)
    waits = [decide_reconnect("rolling", chance, streams=800).retry_ms for _ in range(800)]
    busiest = max(
        sum(begin <= wait < begin + 100 for wait in waits) for begin in range(0, 1600, 50)
    )
    assert busiest < 800 / 8
