"""Node, for tests whose subject is JavaScript.

Knows nothing of what is run. Where there is no node, the test is reported as not run, with the reason.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[1] / "clients" / "node_modules"


def find_node() -> str:
    """Return the path of node, or skip the test that asked."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("NOT RUN: no node on this machine to run JavaScript with")
    return node


def find_package(name: str) -> str:
    """Return the path of node, or skip the test that asked: the npm package was not installed."""
    if not (PACKAGES / name).is_dir():
        pytest.skip(
            f"NOT RUN: the npm package {name} is not installed (make test does, where npm is)"
        )
    return find_node()


def run_tests(script: Path, environ: Mapping[str, str] | None = None) -> None:
    """Run a file of node's own tests; one that fails fails the caller, with node's words."""
    command = [find_node(), "--test", "--test-reporter=tap", str(script)]
    ran = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=110, env=environ
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
