"""Wrong clocks for real processes, by libfaketime: every clock of the process is wrong, down to C.

Python, uvloop, SQLite and gRPC's core ask the C library for the time, and wait in it; the library that
is loaded before it answers otherwise. Knows nothing of what the processes do. Debian's package
``faketime`` has it; where it is not installed, tests that need it are reported as not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

NOT_RUN = "libfaketime was not found (Debian has it in the package faketime)"
HOUR_MS = 3_600_000

_LIBRARIES = "*-linux-gnu/faketime/libfaketime.so.1"

Clock = Mapping[str, str]
"""Variables of a process, apart from the library itself."""
AHEAD: Clock = {"FAKETIME": "+1h"}
BEHIND: Clock = {"FAKETIME": "-1h"}
DOUBLE_SPEED: Clock = {"FAKETIME": "+0 x2"}
"""Wall clock, monotonic clock and every time-out."""


def find_library() -> Path | None:
    """Return libfaketime, if it is installed."""
    return next(iter(sorted(Path("/usr/lib").glob(_LIBRARIES))), None)


def told_by(clock: Clock) -> dict[str, str]:
    """Return the variables of a process that goes by a clock."""
    library = find_library()
    assert library is not None, NOT_RUN
    return {"LD_PRELOAD": str(library), **clock}
