"""A pytest plugin: says loudly, at the end of a run, what was NOT RUN and for want of what.

Knows nothing of what tests need: one that is skipped gives its reason, and that is told.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each reason, so that nobody takes what was skipped for passed."""
    reasons = Counter(map(_reason, terminalreporter.getreports("skipped")))
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"NOT RUN: {count} tests: {reason}", red=True, bold=True)


def _reason(report: Any) -> str:
    _path, _line, words = report.longrepr
    return str(words).removeprefix("Skipped: ").removeprefix("NOT RUN: ")
