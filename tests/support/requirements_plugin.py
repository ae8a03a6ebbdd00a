"""Reads which requirements the tests prove, and tells the count at the end of every run.

Knows nothing of the tests' outcome. The marks are read from the source, so that tests left out
of a run count as well.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.requirements import CASES, GAPS, LATER

TESTS = Path(__file__).parents[1]
PROTOCOL = TESTS.parent / "proto" / "PROTOCOL.md"
RULE = re.compile(r"^(?:- )?\*\*(P-[A-Z0-9]+-\d+)\*\* (.+)$", re.MULTILINE)


def protocol_rules(text: str) -> list[tuple[str, str]]:
    """Return the ``(id, first line of the sentence)`` of every ``**P-XXX-n** sentence``."""
    return [(rule[1], rule[2]) for rule in RULE.finditer(text)]


def all_requirements() -> dict[str, str]:
    """Return every requirement's sentence by its id."""
    return CASES | dict(protocol_rules(PROTOCOL.read_text()))


def proofs(tests: Path = TESTS) -> dict[str, list[str]]:
    """Return, for every id that a test names, the ``file:line`` of each mark."""
    # Garbage that complains as it goes has a traceback printed, which parses; amid our own parsing Python 3.11
    # calls that a SystemError. So it goes now.
    gc.collect()
    found: dict[str, list[str]] = {}
    for path in sorted(tests.rglob("*.py")):
        for requirement_id, line in _marks(ast.parse(path.read_text())):
            found.setdefault(requirement_id, []).append(f"{path.relative_to(tests)}:{line}")
    return found


def disagreements(
    requirements: Mapping[str, str],
    unproved: Mapping[str, str],
    proved: Mapping[str, list[str]],
) -> list[str]:
    """Compare the tables with the tests, in both directions. Empty when they agree."""
    return [
        *(f"{id_}: no test proves it, and no table says why" for id_ in requirements
          if id_ not in proved and id_ not in unproved),
        *(f"{id_}: {', '.join(proved[id_])} proves it, so it is no gap any more" for id_ in unproved
          if id_ in proved),
        *(f"{id_}: there is no such requirement ({', '.join(places)})"
          for id_, places in proved.items() if id_ not in requirements),
        *(f"{id_}: listed as unproved, but there is no such requirement" for id_ in unproved
          if id_ not in requirements),
    ]  # fmt: skip


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line of counts, so that gaps are seen and not forgotten."""
    count_proved = len(all_requirements().keys() & proofs().keys())
    terminalreporter.write_line(
        f"requirements: {count_proved} proved, {len(GAPS)} known gaps, {len(LATER)} for later"
    )


def _marks(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_proves(node.func):
            for argument in node.args:
                # Anything but a plain text would hide from this reader.
                assert isinstance(argument, ast.Constant), f"line {node.lineno}: not a plain text"
                yield str(argument.value), node.lineno


def _is_proves(function: ast.expr) -> bool:
    """Whether it is ``pytest.mark.proves``."""
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "proves"
        and isinstance(function.value, ast.Attribute)
        and function.value.attr == "mark"
    )
