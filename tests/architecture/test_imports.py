"""Imports point one way; the contracts are in pyproject.toml."""

from __future__ import annotations

from tests.architecture.source import assert_clean, run_tool


def test_every_import_points_the_right_way() -> None:
    assert_clean(run_tool("lint-imports", "--no-cache"))
