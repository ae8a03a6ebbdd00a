"""A report in SQL over the field cases of the project, kept as a small table beside this module."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

CASES = Path(__file__).parent / "data" / "cases.csv"


def count_by_area() -> list[dict[str, object]]:
    """Return each area with its number of cases, largest first."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE cases (id TEXT PRIMARY KEY, area TEXT, title TEXT)")
        database.executemany("INSERT INTO cases VALUES (?, ?, ?)", _rows())
        rows = database.execute(
            "SELECT area, count(*) FROM cases GROUP BY area ORDER BY count(*) DESC, area"
        )
        return [{"area": area, "cases": count} for area, count in rows]


def _rows() -> Iterator[tuple[str, str, str]]:
    with CASES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield row["id"], row["area"], row["title"]
