"""Every example of docs/front-end.md is run by a test as it stands, or is known not to be."""

from __future__ import annotations

import re

from tests.architecture.source import ROOT
from tests.support.examples import NOT_RUN, sections


def test_every_example_is_run() -> None:
    tests = "".join(path.read_text() for path in ROOT.glob("tests/*/test_examples.py"))
    run = set(re.findall(r'\bexamples\("([^"]+)"\)', tests))
    assert run | set(NOT_RUN) == {title for title, _ in sections()}
