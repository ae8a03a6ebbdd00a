"""Plugins of the whole suite. Fixtures live beside the tests that use them."""

from __future__ import annotations

pytest_plugins = [
    "tests.support.firestore_emulator",
    "tests.support.not_run_plugin",
    "tests.support.requirements_plugin",
]
