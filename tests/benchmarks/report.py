"""Says what was measured, as tables that read well in a terminal and in Markdown.

Knows nothing of how it was measured.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks.load_client import Window

_PACKAGES = ("grpcio", "protobuf", "quart", "hypercorn", "h11", "uvloop")


def facts() -> str:
    """Return what a reader must know of the machine before the figures mean anything."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{os.cpu_count()} cores ({_processor()}), {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}\n{packages}\nload average at the start: {load}"
    )


def _processor() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()


def pipes_table(runs: Mapping[str, Sequence[Window]], baseline: str) -> str:
    """Return one line for each pipe, its runs taken together."""
    head = ["pipe", "CPU us/event", "runs", f"x {baseline}", "events/s", "cores", "RSS MB"]
    base = _cost(runs[baseline]) or 1.0
    return _table(
        [*head, "runtime us/event"],
        [_line(name, windows, base) for name, windows in runs.items() if windows],
    )


def _line(name: str, windows: Sequence[Window], base: float) -> list[str]:
    seconds = sum(window.seconds for window in windows)
    events = sum(window.events for window in windows)
    each = sorted(_cost([window]) for window in windows)
    lost = sum(window.lost for window in windows)
    return [
        name if not lost else f"{name} (VOID: {lost} streams lost)",
        f"{_cost(windows):.0f}",
        f"{each[0]:.0f}-{each[-1]:.0f}",
        f"{_cost(windows) / base:.2f}",
        f"{events / seconds:.0f}",
        f"{_total(windows, 'edge') / seconds:.2f}",
        f"{max(window.rss_mb['edge'] for window in windows):.0f}",
        f"{_total(windows, 'runtime') * 1e6 / max(events, 1):.0f}",
    ]


def _cost(windows: Sequence[Window]) -> float:
    """Return the CPU microseconds of the edge for each event that was delivered."""
    return _total(windows, "edge") * 1e6 / max(sum(window.events for window in windows), 1)


def _total(windows: Sequence[Window], process: str) -> float:
    return sum(window.cpu_seconds[process] for window in windows)


def micro_table(rows: Sequence[tuple[str, float]]) -> str:
    """Return one line for each step."""
    return _table(["step", "CPU us"], [[name, f"{cost:.2f}"] for name, cost in rows])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join(
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in ruled
    )
