"""House rules that a reader would otherwise have to check: sizes, places, words.

Style and types are ruff's and mypy's affair (`make lint`); here is what they cannot say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.architecture.source import (
    ROOT,
    Function,
    functions,
    parsed,
    project_files,
    python_files,
)

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 400
POSITIONAL_MAX = 5

# Spelled in pieces, so that this file does not break the rules that it states.
INDEX_HOSTS = (
    "pypi" + ".org",
    "python" + "hosted.org",
    "npm" + "js.org",
    "deb" + ".debian.org",
    "security" + ".debian.org",
)
MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:" + "|".join(("work", "root", "home", "tmp")) + r")/")
UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME")) + r")\b")

ENVIRONMENT_READERS = {
    "agent_runtime/__main__.py",
    # Agents are loaded by name, so each of these rooms puts itself together.
    "agent_runtime/adapters/openai_compatible.py",
    "agent_runtime/demo/__init__.py",
    "edge/__main__.py",
    "edge/local.py",
    "edge/main.py",
    "tests/lab/__main__.py",
    "tests/lab/agent.py",
    "tests/lab/naive.py",
}
"""The composition roots. Everything else is told what it needs."""


def _texts() -> Iterator[tuple[str, str]]:
    """Every text file of the project, lock files left out: their hashes may spell anything."""
    for name in project_files():
        raw = (ROOT / name).read_bytes()
        if b"\0" not in raw:
            yield name, raw.decode()


def _lines_matching(is_bad: Callable[[str], object]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in _texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if is_bad(line)
    ]


def test_no_function_is_longer_than_a_screen() -> None:
    assert [
        f"{name}:{function.lineno} {function.name}"
        for name in python_files()
        for function in functions(name)
        if (function.end_lineno or 0) - function.lineno + 1 > FUNCTION_LINES_MAX
    ] == []


def test_no_source_file_is_longer_than_a_sitting() -> None:
    assert [
        name
        for name in project_files()
        if name.endswith((".py", ".js", ".mjs"))
        and len((ROOT / name).read_text().splitlines()) > FILE_LINES_MAX
    ] == []


def _positional(function: Function) -> list[str]:
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def test_no_function_takes_many_positional_parameters() -> None:
    assert [
        f"{name}:{function.lineno} {function.name}"
        for name in python_files()
        for function in functions(name)
        if len(_positional(function)) > POSITIONAL_MAX
    ] == []


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name in python_files() if not ast.get_docstring(parsed(name))] == []


def test_every_folder_of_python_is_a_package() -> None:
    folders = {name.rsplit("/", 1)[0] for name in python_files("edge", "agent_runtime", "tests")}
    assert [
        folder for folder in sorted(folders) if not (ROOT / folder / "__init__.py").exists()
    ] == []


def test_the_contract_folder_never_becomes_a_package() -> None:
    """Firestore imports proto-plus as ``proto``; a package of that name here would hide it."""
    assert list((ROOT / "proto").rglob("__init__.py")) == []


def test_no_module_is_a_drawer() -> None:
    assert [
        name for name in python_files() if re.search(r"/(utils?|helpers?|common|misc)\.py$", name)
    ] == []


def test_nothing_is_left_unfinished() -> None:
    assert _lines_matching(UNFINISHED.search) == []


def test_no_file_names_a_package_index() -> None:
    assert _lines_matching(lambda line: any(host in line for host in INDEX_HOSTS)) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    assert _lines_matching(MACHINE_PATH.search) == []


def _reads_environment(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr in {"environ", "getenv", "putenv"}
    ) or (isinstance(node, ast.ImportFrom) and node.module == "os" and "environ" in ast.dump(node))


def test_only_composition_roots_read_the_environment() -> None:
    assert [
        f"{name}:{getattr(node, 'lineno', 0)}"
        for name in (
            *python_files("edge", "agent_runtime"),
            *filter(_is_of_the_lab, python_files("tests")),
        )
        if name not in ENVIRONMENT_READERS
        for node in ast.walk(parsed(name))
        if _reads_environment(node)
    ] == []


def _sleeps(name: str) -> Iterator[int]:
    """Yield the lines where a test waits for real time to pass.

    ``asyncio.sleep(0)`` only yields, ``POLL_SECONDS`` names a step of a bounded wait for another
    process, and virtual time costs nothing: a file is in it that runs it, or says that it is.
    """
    tree = parsed(name)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if "run_virtual" in names or "virtual time" in (ast.get_docstring(tree) or ""):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"asyncio.sleep", "time.sleep"}:
            argument = ast.unparse(node.args[0]) if node.args else ""
            if argument not in {"0", "POLL_SECONDS"}:
                yield node.lineno


def test_no_test_sleeps() -> None:
    files = [name for name in python_files("tests") if not _is_of_the_lab(name)]
    assert [f"{name}:{line}" for name in files for line in _sleeps(name)] == []


def _is_of_the_lab(name: str) -> bool:
    """Whether the file is the connection lab's own, and no test of it."""
    return name.startswith("tests/lab/") and not name.startswith("tests/lab/test_")


@pytest.mark.parametrize(
    ("line", "is_machine_path"),
    [
        ("see /" + "work/main", True),
        ("'/" + "tmp/x'", True),
        ("https://example.com/" + "root/", False),
        ("docs/" + "home/index.html", False),
    ],
)
def test_a_path_of_one_machine_is_recognised(line: str, is_machine_path: bool) -> None:
    assert bool(MACHINE_PATH.search(line)) == is_machine_path
