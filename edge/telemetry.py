"""Metrics behind the ``Telemetry`` port, in the Prometheus text format; and the log's one line of JSON.

Knows nothing of who counts. Every metric name stands in one table; a test holds the code against it.
Log lines are built from an allowlist: text that a user, a model or a library made never gets in.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Literal

METRICS: Mapping[str, tuple[Literal["counter", "gauge"], str]] = {
    "append_refused": ("counter", "Records that the journal will never take."),
    "attempts_started": ("counter", "Attempts of turns, the first ones included."),
    "driver_failed": ("counter", "Sessions whose driver failed; the next one takes over."),
    "http_errors": ("counter", "Requests answered with a status of 500 or more."),
    "http_refusals": ("counter", "Requests answered with a status from 400 to 499."),
    "journal_unavailable": ("counter", "Times that the journal did not answer a driver."),
    "log_broken": ("counter", "Logs with a hole or an impossible record."),
    "records_committed": ("counter", "Records appended by this process."),
    "renewals_failed": ("counter", "Lease renewals that the journal did not take."),
    "runtime_events_skipped": ("counter", "Runtime events of a kind that this edge does not know."),
    "sessions_open": ("gauge", "Sessions held in memory."),
    "streams": ("gauge", "Open event streams."),
    "takeovers": ("counter", "Sessions taken over from another owner."),
    "tasks_failed": ("counter", "Application tasks that ended with an exception."),
    "turns_cancelled_unwatched": ("counter", "Turns stopped because nobody watched them any more."),
    "turns_started": ("counter", "Turns started by this process."),
    "viewers_stalled": ("counter", "Streams closed because their client took nothing."),
}
_PREFIX = "unbroken_"

FIELDS = (
    "session",
    "turn",
    "attempt",
    "epoch",
    "slot",
    "seq",
    "writer",
    "code",
    "reason",
    "state",
)
"""What a log line may carry beside its fixed message: ids, numbers and codes, no content."""


class Metrics:
    """Counts in memory. One process, one loop: no lock."""

    def __init__(self) -> None:
        self._values: dict[str, float] = dict.fromkeys(METRICS, 0)

    def count(self, name: str) -> None:
        """Count one more. Raises ``KeyError`` for a name that is not in the table."""
        self._values[name] += 1

    def gauge(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._values[name] = value

    def render(self) -> str:
        """Return everything in the Prometheus text format 0.0.4."""
        return "".join(self._lines(name, kind, text) for name, (kind, text) in METRICS.items())

    def _lines(self, name: str, kind: str, text: str) -> str:
        full = _PREFIX + name + ("_total" if kind == "counter" else "")
        value = self._values[name]
        return f"# HELP {full} {text}\n# TYPE {full} {kind}\n{full} {value:.15g}\n"


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, as Cloud Logging reads it.

    Our own messages are fixed texts and are kept. A library's message is cut to the first line of
    its template, without the arguments: ``asyncio`` alone would print whole exceptions there.
    """

    def format(self, record: logging.LogRecord) -> str:
        ours = record.name.partition(".")[0] == "edge"
        message = record.getMessage() if ours else str(record.msg).partition("\n")[0][:200]
        line: dict[str, object] = {
            "severity": record.levelname,
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "logger": record.name,
            "message": message,
        }
        line.update({name: vars(record)[name] for name in FIELDS if name in vars(record)})
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = type(record.exc_info[1]).__name__
            line["at"] = _frames(record.exc_info[2])
        return json.dumps(line, default=str)


def set_up_logging(level: int = logging.INFO) -> None:
    """Send every log line to stderr as JSON; libraries from WARNING up."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("edge").setLevel(level)


def _frames(trace: TracebackType | None) -> list[str]:
    """Return where an exception came from, innermost last: places in code, no values."""
    frames = traceback.extract_tb(trace, limit=-6)
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames]
