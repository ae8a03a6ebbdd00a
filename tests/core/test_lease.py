"""The lease: when an owner falls silent, and when another edge may take over."""

from __future__ import annotations

import math

import pytest

from edge.core.lease import Lease, Suspicion, Vacancy, decide_vacancy


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


@pytest.mark.proves("P-LOG-13")
@pytest.mark.parametrize(
    ("needs_writer", "head_epoch", "seconds_ago", "unchanged", "vacancy"),
    [
        (True, 3, 0.0, 0.0, Vacancy.TAKEN),
        (True, 3, 15.0, 15.0, Vacancy.TAKEN),
        (True, 3, 15.1, 0.0, Vacancy.DOUBTFUL),
        (True, 3, 0.0, 15.1, Vacancy.DOUBTFUL),  # the store's clock was set back
        (True, 3, math.inf, 0.0, Vacancy.FREE),  # released
        (True, 2, math.inf, 0.0, Vacancy.DOUBTFUL),  # the new owner's first renewal is on its way
        (True, 2, 1.0, 0.0, Vacancy.DOUBTFUL),
        (False, 3, math.inf, 100.0, Vacancy.TAKEN),
        (False, 3, 100.0, 100.0, Vacancy.TAKEN),
    ],
)
def test_a_seat_is_free_only_if_somebody_is_needed_and_nobody_gives_a_sign_of_life(
    *, needs_writer: bool, head_epoch: int, seconds_ago: float, unchanged: float, vacancy: Vacancy
) -> None:
    decided = decide_vacancy(
        needs_writer=needs_writer,
        head_epoch=head_epoch,
        log_epoch=3,
        renewed_seconds_ago=seconds_ago,
        unchanged_seconds=unchanged,
        ttl_seconds=15.0,
    )
    assert decided is vacancy


def test_a_renewal_is_unchanged_since_it_was_first_seen() -> None:
    suspicion = Suspicion(15.0)
    assert suspicion.unchanged_seconds((3, 1000), 100.0) == 0.0
    assert suspicion.unchanged_seconds((3, 1000), 107.0) == 7.0
    assert suspicion.unchanged_seconds((3, 900), 108.0) == 0.0  # earlier, and yet another one
    assert suspicion.unchanged_seconds((4, 900), 110.0) == 0.0


def test_a_doubt_must_last_two_seconds_in_which_nothing_dispels_it() -> None:
    suspicion = Suspicion(15.0)
    assert not suspicion.confirms(Vacancy.DOUBTFUL, 100.0)
    suspicion.dispel()
    assert not suspicion.confirms(Vacancy.DOUBTFUL, 101.0)
    assert not suspicion.confirms(Vacancy.TAKEN, 102.0)
    assert not suspicion.confirms(Vacancy.DOUBTFUL, 103.0)
    assert not suspicion.confirms(Vacancy.DOUBTFUL, 104.9)
    assert suspicion.confirms(Vacancy.DOUBTFUL, 105.0)


def test_a_seat_that_was_given_up_is_taken_at_once() -> None:
    assert Suspicion(15.0).confirms(Vacancy.FREE, 100.0)
