"""The examples of docs/testing-agents.md are tests that pass."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import testing
from agent_runtime.testing import Scene

PAGE = (Path(__file__).parents[3] / "docs" / "testing-agents.md").read_text()


def examples() -> dict[str, Any]:
    """Run the page's code as one module, and return its names."""
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    # Inherits no future import: the page's code must run as it stands.
    names: dict[str, Any] = {"__name__": "testing_agents"}
    exec(compile(code, "testing-agents.md", "exec", dont_inherit=True), names)
    return names


TESTS: dict[str, Callable[[], Awaitable[None]]] = {
    name: value for name, value in examples().items() if name.startswith("test_")
}


def test_every_example_is_found() -> None:
    assert len(TESTS) == PAGE.count("async def test_") == 9


@pytest.mark.parametrize("name", TESTS)
async def test_an_example_passes(name: str) -> None:
    await TESTS[name]()


def test_the_page_shows_every_function_that_is_public() -> None:
    functions = [name for name in testing.__all__ if name.islower()]
    assert [name for name in functions if name not in PAGE] == []


def test_the_page_tells_the_defaults() -> None:
    scene = Scene(agent=None)
    assert f"`grace_seconds` ({scene.grace_seconds:.0f})" in PAGE
    assert f"`limit_seconds` ({scene.limit_seconds:.0f}" in PAGE
    assert scene.wall_clock() == 0
