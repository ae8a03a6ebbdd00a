"""Makes the tables of docs/reliability.md from what campaigns left in a folder of JSON files.

Knows nothing of how anything was found. Every file also names the code that it was measured on.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.campaigns.tally import Tally, total
from tests.support.history import Kind

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
COLUMNS = (
    Kind.LOST,
    Kind.DUPLICATED,
    Kind.REORDERED,
    Kind.FORKED,
    Kind.TOOL_TWICE,
    Kind.STARTED_AFTER_STOP,
    Kind.OTHER,
)


def save(folder: Path, name: str, tallies: Sequence[Tally], notes: Sequence[str] = ()) -> None:
    """Keep what one campaign found; the same campaign's older result is replaced.

    ``notes`` are sentences that stand under the tables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    value = {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "tallies": [tally.as_json() for tally in tallies],
        "notes": list(notes),
    }
    (folder / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")


def write(folder: Path, page: Path) -> list[Tally]:
    """Put the tables of all that was saved into the page, between its two marks; return the rows.

    Raises:
        ValueError: the page has not both marks.
    """
    saved = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    rows = total(Tally.from_json(value) for one in saved for value in one["tallies"])
    head, begin, rest = page.read_text().partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page.name} has no place for the figures")
    commits = sorted({one["commit"] for one in saved})
    when = sorted(one["when"] for one in saved)
    origin = (
        f"Measured from {when[0]} to {when[-1]} on commit {', '.join(commits)}." if saved else ""
    )
    notes = "\n".join(f"- {note}" for one in saved for note in one["notes"])
    figures = "\n\n".join(part for part in (origin, tables(rows), notes) if part)
    page.write_text(f"{head}{BEGIN}\n{figures}\n{END}{tail}")
    return rows


def tables(rows: Iterable[Tally]) -> str:
    """Return the table of violations, and the one of times."""
    counted: list[Sequence[str]] = [
        ("layer", "fault", "staged", "histories", *(kind.value for kind in COLUMNS))
    ]
    timed: list[Sequence[str]] = [("fault", "what", "samples", "p50 s", "p99 s", "longest s")]
    for row in rows:
        figures = [row.count, row.histories, *(row.found[kind] for kind in COLUMNS)]
        counted.append((row.layer, row.fault, *(f"{number:,}" for number in figures)))
        for what, seconds in (
            ("take-over", row.takeover_seconds),
            ("silence", row.gap_seconds),
        ):
            if seconds:
                times = (percentile(seconds, 50), percentile(seconds, 99), max(seconds))
                name = f"{row.layer}, {row.fault}"
                timed.append((name, what, f"{len(seconds):,}", *(f"{t:.2f}" for t in times)))
    return "\n\n".join(_table(table) for table in (counted, timed) if len(table) > 1)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile: a value that was really measured."""
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "| " + " | ".join("-" * width for width in widths) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])


def _commit() -> str:
    """Return the commit that is checked out, with a plus where code differs from it."""
    head = ["rev-parse", "--short", "HEAD"]
    # The page is written by the first of several campaigns, and changes nothing.
    changed = ["status", "--porcelain", "-uno", "--", ":(top)", ":(top,exclude)docs"]
    try:
        said = [
            subprocess.run(["git", *words], capture_output=True, check=True, text=True).stdout
            for words in (head, changed)
        ]
    except (OSError, subprocess.CalledProcessError):  # what took hours is not lost for that
        return "unknown"
    return said[0].strip() + ("+" if said[1] else "")
