"""The gRPC contract: well written, compatible with its past, and generated code that is fresh."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import (
    COMMAND_TIMEOUT_SECONDS,
    ROOT,
    assert_clean,
    run,
    run_tool,
)

PROTO = "proto/unbroken/v1/agent_runtime.proto"
BY_HAND = {"py.typed"}


def _reference() -> str:
    """Return the commit that the contract must not break: main, or on main itself its parent."""
    on_main = run("git", "branch", "--show-current").stdout.strip() == "main"
    knows_main = run("git", "rev-parse", "--verify", "--quiet", "main").returncode == 0
    return "HEAD~1" if on_main or not knows_main else "main"


def test_the_contract_is_well_written() -> None:
    assert_clean(run_tool("buf", "lint"))


def test_the_contract_is_formatted() -> None:
    assert_clean(run_tool("buf", "format", "--diff", "--exit-code"))


@pytest.mark.parametrize("reference", [_reference()])
def test_the_contract_breaks_nobody_who_was_built_against(reference: str) -> None:
    if run("git", "cat-file", "-e", f"{reference}:{PROTO}").returncode != 0:
        pytest.skip(f"{reference} has no contract to compare with")
    assert_clean(run_tool("buf", "breaking", "--against", f".git#ref={reference}"))


def _generate(out: Path) -> None:
    options = ("--python_out", "--grpc_python_out", "--mypy_out", "--mypy_grpc_out")
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", "proto"]
        + [f"{option}={out}" for option in options]
        + [PROTO],
        cwd=ROOT,
        check=True,
        capture_output=True,
        # protoc finds its plugins by name.
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        timeout=COMMAND_TIMEOUT_SECONDS,
    )


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and path.name not in BY_HAND
    }


def test_the_generated_code_is_what_the_contract_generates(tmp_path: Path) -> None:
    _generate(tmp_path)

    fresh, committed = _contents(tmp_path), _contents(ROOT / "proto" / "gen")

    stale = [name for name in sorted(fresh | committed) if fresh.get(name) != committed.get(name)]
    assert stale == [], "run `make gen`"
