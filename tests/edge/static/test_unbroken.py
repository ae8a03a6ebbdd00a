"""The client library and the page's own modules, by node's tests. Each file there says what it shows.

Knows nothing of JavaScript. What a file proves is marked here, where the requirements are read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.node import run_tests

HERE = Path(__file__).parent


def prove(name: str) -> None:
    run_tests(HERE / f"{name}.test.mjs")


@pytest.mark.proves("S73", "T41")
def test_the_parser_reads_what_browsers_read_however_the_bytes_are_cut() -> None:
    prove("sse")


@pytest.mark.proves("P-EVT-2", "P-EVT-3", "P-SSE-11", "P-SSE-12")
def test_a_view_is_what_the_events_say() -> None:
    prove("view")


def test_the_page_finds_words_for_what_it_shows() -> None:
    prove("words")
