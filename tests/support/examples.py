"""The examples of docs/front-end.md, word for word, for the tests that run them.

Knows nothing of how any of them is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "front-end.md"
NOT_RUN = {"CopilotKit": "its packages are many times as many as those of all other kits together"}

_FENCED = re.compile(r"^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^##+ (.*)\n", re.MULTILINE)


def sections() -> Iterator[tuple[str, list[str]]]:
    """Yield the title of each section that has examples, and these."""
    _, *parts = _SECTION.split(PAGE.read_text())
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if found := _FENCED.findall(text):
            yield title, found


def examples(title: str) -> list[str]:
    """Return the examples of one section."""
    return dict(sections())[title]


def inline_example(beginning: str) -> str:
    """Return the one piece of code in a sentence that begins so."""
    (found,) = re.findall(rf"`({re.escape(beginning)}[^`]*)`", PAGE.read_text())
    return str(found)
