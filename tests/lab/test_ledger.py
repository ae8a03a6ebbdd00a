"""What really happened, and the errand that makes it happen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.errand import Errand, book_table
from tests.lab.ledger import Facts, Ledger


async def test_every_booking_of_a_conversation_is_counted(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)

    assert await book_table(ledger, "one", 0) == "booking no. 1"
    assert await book_table(Ledger(tmp_path), "one", 0) == "booking no. 2"
    assert await book_table(ledger, "other", 0) == "booking no. 1"
    assert ledger.facts("one") == Facts(bookings=2)


def test_the_last_event_of_each_run_is_known(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for run, number in (("a", 1), ("b", 1), ("a", 2)):
        ledger.say("one", run, number)

    assert ledger.facts("one").said == {"a": 2, "b": 1}


def test_a_row_that_is_half_written_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"booking": true}\n{"book')

    assert Ledger(tmp_path).facts("one") == Facts(bookings=1)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a" * 65, "é", "a\n"])
def test_a_name_that_could_leave_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not the name"):
        Ledger(tmp_path).facts(name)


def test_an_errand_counts_by_tens_and_books_half_way() -> None:
    errand = Errand.parse(json.dumps({"last": 24, "tool_seconds": 3}))

    assert errand.tool_seconds == 3.0
    assert [len(line) for line in errand.before()] == [10, 2]
    assert [len(line) for line in errand.after()] == [10, 2]
    said = [word for line in errand.before() + errand.after() for word in line]
    assert "".join(said).split() == [str(number) for number in range(1, 25)]


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "hello",
        "[]",
        '{"last":0,"tool_seconds":1}',
        '{"last":10}',
        '{"last":5,"tool_seconds":-1}',
    ],
)
def test_another_prompt_is_refused(prompt: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are the JSON parser's, or ours
        Errand.parse(prompt)
