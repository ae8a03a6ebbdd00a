"""The tables say what was counted, and no row looks clean that was not judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.report import BEGIN, END, percentile, save, tables, write
from tests.campaigns.tally import TOLD_MAX, Tally, total
from tests.support.history import ClientLog, Heard, History, Kind, Violation


def cells(table: str, line: int) -> list[str]:
    return [cell.strip() for cell in table.splitlines()[line].strip("|").split("|")]


def test_a_violation_is_counted_in_the_column_of_its_kind() -> None:
    row = Tally("processes", "kill -9", count=1_000, histories=1_200)
    row.accuse([Violation(Kind.FORKED, "a"), Violation(Kind.FORKED, "b")])
    told = dict(zip(cells(tables([row]), 0), cells(tables([row]), 2), strict=True))
    assert (told["staged"], told["histories"]) == ("1,000", "1,200")
    assert {name: told[name] for name in ("lost", "forked")} == {"lost": "0", "forked": "2"}


def test_a_history_that_breaks_a_promise_makes_its_row_unclean() -> None:
    row = Tally("processes", "kill -9", count=1)
    row.judge(History(records=[], clients=[ClientLog("a", [Heard(1, 2, "token", "x")], after=0)]))
    assert not row.clean
    assert row.found[Kind.LOST] == 1


def test_a_row_without_a_judged_history_is_not_clean() -> None:
    assert not Tally("processes", "kill -9", count=3).clean
    assert not Tally("processes", "kill -9", histories=3).clean
    assert Tally("processes", "kill -9", count=3, histories=3).clean


def test_parts_of_one_row_are_added_up() -> None:
    part = Tally("a", "x", 2, 3, takeover_seconds=[1.0])
    part.accuse([Violation(Kind.LOST, str(number)) for number in range(TOLD_MAX)])
    rows = total([part, Tally("b", "y", 1, 1), part])
    assert [(row.fault, row.count, row.histories) for row in rows] == [("x", 4, 6), ("y", 1, 1)]
    assert rows[0].found[Kind.LOST] == 2 * TOLD_MAX
    assert len(rows[0].told) == TOLD_MAX
    assert rows[0].takeover_seconds == [1.0, 1.0]


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (99, 99), (100, 100), (1, 1)])
def test_a_percentile_is_a_value_that_was_measured(percent: int, value: int) -> None:
    assert percentile([float(n) for n in range(100, 0, -1)], percent) == value


def test_the_page_keeps_its_prose_and_gets_what_was_saved(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold figures\n{END}\nafter\n")
    row = Tally("processes", "kill -9", 7, 9, gap_seconds=[0.5])
    save(tmp_path / "found", "kill", [row], ["A note."])
    assert [(r.count, r.gap_seconds) for r in write(tmp_path / "found", page)] == [(7, [0.5])]
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\nMeasured from ")
    assert text.endswith(f"- A note.\n{END}\nafter\n")
    assert "old figures" not in text
    assert "kill -9" in text


def test_a_page_without_a_place_for_figures_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    with pytest.raises(ValueError, match="no place"):
        write(tmp_path / "found", page)
    assert page.read_text() == "nothing here\n"
