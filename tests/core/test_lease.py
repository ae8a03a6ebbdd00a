"""The lease: when an owner falls silent, and when another edge may take over."""

from __future__ import annotations

import math

import pytest

from edge.core.lease import Lease, decide_take_over


def test_an_owner_is_believed_until_three_seconds_before_its_time_is_over() -> None:
    lease = Lease(15.0, confirmed_at=100.0)
    assert lease.fresh(111.99)
    assert not lease.fresh(112.0)


def test_a_confirmation_counts_from_when_it_was_asked_for_and_never_backwards() -> None:
    lease = Lease(15.0, confirmed_at=100.0)
    lease.confirm(105.0)
    lease.confirm(103.0)
    assert lease.fresh(116.9)
    assert not lease.fresh(117.0)


def test_a_time_limit_below_the_margin_shows_nothing_uncommitted() -> None:
    assert not Lease(2.0, confirmed_at=100.0).fresh(100.0)


@pytest.mark.parametrize(
    ("needs_writer", "seconds_ago", "takes"),
    [
        (True, 15.1, True),
        (True, 15.0, False),
        (True, 0.0, False),
        (True, math.inf, True),
        (False, math.inf, False),
        (False, 100.0, False),
    ],
)
def test_a_follower_takes_over_only_what_needs_a_writer_and_has_none(
    *, needs_writer: bool, seconds_ago: float, takes: bool
) -> None:
    decided = decide_take_over(
        needs_writer=needs_writer, renewed_seconds_ago=seconds_ago, ttl_seconds=15.0
    )
    assert decided == takes
