"""The project's own files, as the house rules look at them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = "proto/gen/"
COMMAND_TIMEOUT_SECONDS = 50.0

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def project_files() -> tuple[str, ...]:
    """Return every file that git tracks or would add, from the root, generated code left out."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
    return tuple(
        name
        for name in sorted(set(listed.split("\0")))
        if name and not name.startswith(GENERATED) and (ROOT / name).is_file()
    )


def python_files(*folders: str) -> tuple[str, ...]:
    """Return the Python files below the given top folders; all of them if none is given."""
    return tuple(
        name
        for name in project_files()
        if name.endswith(".py") and (not folders or name.split("/")[0] in folders)
    )


@cache
def parsed(name: str) -> ast.Module:
    """Return the syntax tree of a file; treat it as read-only."""
    return ast.parse((ROOT / name).read_text(), filename=name)


def functions(name: str) -> Iterator[Function]:
    """Yield every function of a file, nested ones and methods too."""
    for node in ast.walk(parsed(name)):
        if isinstance(node, Function):
            yield node


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command at the root of the project, and return what it printed."""
    return subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=COMMAND_TIMEOUT_SECONDS,
    )


def run_tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a tool that was installed beside this Python."""
    return run(str(Path(sys.executable).with_name(name)), *arguments)


def assert_clean(done: subprocess.CompletedProcess[str]) -> None:
    """Fail with a command's own words unless it succeeded."""
    assert done.returncode == 0, done.stdout + done.stderr
