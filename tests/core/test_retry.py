"""The plan for the next attempt: a pause that grows, and a budget that ends."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from edge.core.patience import WriterSettings
from edge.core.retry import Retry

NOW = 100.0


@dataclass
class Fixed:
    """A chance that always falls the same way."""

    value: float

    def random(self) -> float:
        return self.value


def ended(chance: float = 1.0) -> Retry:
    """A plan whose attempt has just ended."""
    retry = Retry(WriterSettings(), Fixed(chance), NOW)
    retry.plan("runtime_error")
    return retry


def test_a_new_owner_need_not_wait() -> None:
    retry = Retry(WriterSettings(), Fixed(1.0), NOW)
    assert retry.at == NOW
    assert retry.due(5, NOW)


def test_an_attempt_that_brought_something_is_followed_at_once() -> None:
    assert ended().due(0, NOW)


@pytest.mark.parametrize(
    ("barren", "seconds"), [(1, 0.2), (2, 0.4), (3, 0.8), (5, 3.2), (6, 5.0), (9, 5.0)]
)
@pytest.mark.parametrize(("chance", "share"), [(0.0, 0.5), (1.0, 1.0)])
def test_the_pause_doubles_up_to_a_limit_and_is_spread(
    barren: int, seconds: float, chance: float, share: float
) -> None:
    retry = ended(chance)
    assert not retry.due(barren, NOW)
    assert retry.at == pytest.approx(NOW + seconds * share)
    assert retry.due(barren, NOW + seconds * share + 1e-9)


def test_the_pause_is_reckoned_when_it_is_first_asked_for_and_once() -> None:
    retry = ended()
    assert retry.at is None
    assert not retry.due(1, NOW + 7.0)
    assert not retry.due(9, NOW + 7.1)
    assert retry.due(9, NOW + 7.2)


def test_a_time_that_was_planned_is_kept() -> None:
    retry = ended()
    retry.plan(retry.reason, NOW + 3.0)
    assert not retry.due(0, NOW + 2.9)
    assert retry.due(9, NOW + 3.0)
    assert retry.reason == "runtime_error"


@pytest.mark.proves("P-RUN-10")
def test_the_budget_is_ten() -> None:
    assert not ended().spent(9)
    assert ended().spent(10)
