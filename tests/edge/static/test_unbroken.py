"""The client library and the page's own modules, by node's tests. Each file there says what it shows.

Knows nothing of JavaScript. What a file proves is marked here, where the requirements are read.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.edge.static.histories import History
from tests.support.node import find_node, run_tests

pytestmark = pytest.mark.timeout(120)  # node starts slowly on a busy machine

HERE = Path(__file__).parent


def prove(name: str, **environ: str) -> None:
    run_tests(HERE / f"{name}.test.mjs", environ or None)


@pytest.mark.proves("S73", "T41")
def test_the_parser_reads_what_browsers_read_however_the_bytes_are_cut() -> None:
    prove("sse")


@pytest.mark.proves("P-EVT-2", "P-EVT-3", "P-SSE-11", "P-SSE-12")
def test_a_view_is_what_the_events_say() -> None:
    prove("view")


def test_the_page_finds_words_for_what_it_shows() -> None:
    prove("words")


def test_the_page_keeps_what_was_typed_even_where_it_may_store_nothing() -> None:
    prove("keepsakes")


@pytest.mark.proves("S16", "S17", "S57", "S70", "T49", "P-SSE-9", "P-SSE-15")
def test_a_stream_outlives_its_connections() -> None:
    prove("stream")


@pytest.mark.proves("S82", "T50", "P-SSE-21")
def test_a_stream_goes_over_to_another_token_if_there_is_one() -> None:
    prove("tokens")


@pytest.mark.proves("S17", "T48", "P-HTTP-5")
def test_a_session_is_followed_and_spoken_to() -> None:
    prove("session")


def test_a_session_is_loaded_and_what_that_waits_for_is_told() -> None:
    prove("loading")


@pytest.mark.proves("S71")
def test_all_tabs_of_a_session_share_one_stream() -> None:
    prove("tabs")


@pytest.mark.proves(
    "S17", "S19", "S25", "S31", "S32", "S34", "T32", "P-SSE-9", "P-SSE-11", "P-SSE-12"
)
def test_a_thousand_random_fault_histories_end_with_the_journals_view(tmp_path: Path) -> None:
    find_node()
    path = tmp_path / "histories.jsonl"
    with path.open("w", encoding="ascii") as file:
        for seed in range(1_000):
            print(json.dumps(History(seed).as_json()), file=file)
    prove("histories", HISTORIES=str(path))
