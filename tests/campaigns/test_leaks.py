"""What goes up and down is no leak; what stays after each part is one, however small."""

from __future__ import annotations

import pytest

from tests.campaigns.leaks import BYTES_PER_CYCLE, _left
from tests.support.footprint import Outside

PART = 500
LEAK = 2 * BYTES_PER_CYCLE * PART


def looks(*sizes: int, descriptors: int = 20) -> list[Outside]:
    return [Outside(descriptors, threads=8, resident_bytes=size) for size in sizes]


@pytest.mark.parametrize(
    "sizes",
    [(90, 76, 94, 81), (50, 90, 90, 95), (70, 70, 110, 70)],
    ids=["noise", "warm-up", "peak"],
)
def test_memory_that_comes_and_goes_is_no_leak(sizes: tuple[int, ...]) -> None:
    assert _left("edge", looks(*(size * 1_000_000 for size in sizes)), PART) == []


def test_memory_that_stays_after_each_part_is_a_leak() -> None:
    base = 80_000_000
    assert _left("edge", looks(*(base + part * LEAK for part in range(4))), PART)


def test_a_single_descriptor_that_stays_is_a_leak() -> None:
    kept = looks(1, 1) + looks(1, 1, descriptors=21)
    assert [violation.text for violation in _left("edge", kept, PART)] == [
        "edge holds 1 more descriptors"
    ]
