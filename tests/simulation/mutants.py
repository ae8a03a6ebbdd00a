"""Mutants: one rule of the production code broken at a time; the simulation must notice each.

``python -m tests.simulation.mutants [NAME ...]`` runs each in a process of its own until a seed finds it, prints
how many seeds that took, and fails if one survives. A check that does not find these is broken itself.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.simulation import mutations
from tests.simulation.run import run_seed

SEEDS_MAX = 2_000
TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule and the change that breaks it."""

    rule: str
    apply: Callable[[], None]


MUTANTS: dict[str, Mutant] = {
    "seq-only-resolve": Mutant("P-RES-1: a cursor is an epoch and a seq", mutations.ignore_epoch),
    "disobedient-resend": Mutant("P-LOG-9: obey what stands there", mutations.resend_blindly),
    "overwrite": Mutant("a record is created, never changed", mutations.overwrite),
    "stable-writer-id": Mutant("P-LOG-15: a new id at every start", mutations.reuse_writer_id),
    "unsafe-rerun": Mutant("P-RUN-6: an unsafe call is not run again", mutations.run_again),
    "early-cancel-ack": Mutant(
        "P-LOG-8: a cancel is durable first", mutations.answer_cancels_early
    ),
    "early-tool-show": Mutant("P-LOG-7: committed, then shown", mutations.show_tool_starts_early),
    "early-tool-ack": Mutant("P-RUN-4: committed, then released", mutations.release_tools_early),
    "polled-cancel": Mutant("P-HTTP-11: a cancel is in the log", mutations.poll_for_cancels),
    "rewind-to-last": Mutant("the first later epoch decides the fork", mutations.rewind_to_last),
    "no-re-resolve": Mutant(
        "P-RES-2: a newer acquire resolves again", mutations.never_resolve_again
    ),
    "late-acquire": Mutant("P-LOG-1: read on after a late acquire", mutations.trust_late_acquires),
    "kept-tool-start": Mutant("P-HTTP-11: a cancel takes it back", mutations.keep_tool_starts),
    "lasting-grant": Mutant("P-RUN-7: good for one attempt", mutations.keep_grants),
    "unwritten-attempt": Mutant("P-RUN-3: an attempt is durable first", mutations.begin_early),
    "matched-by-slot": Mutant("P-LOG-2: mine only if all of it is", mutations.match_by_slot),
    "no-read-on": Mutant("P-LOG-6: a higher epoch makes it read on", mutations.never_read_on),
}


def seeds_needed(name: str, seeds: Sequence[int]) -> tuple[int, str] | None:
    """Break the rule in this very process, and return how many seeds it took to notice, and what."""
    MUTANTS[name].apply()
    for count, seed in enumerate(seeds, start=1):
        found = run_seed(seed).violations
        if found:
            return count, f"seed {seed}: {found[0].text[:150]}"
    return None


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one mutant."""

    name: str
    found: bool
    said: str
    seconds: float

    def __str__(self) -> str:
        fate = "found" if self.found else "ALIVE"
        return f"{self.name:20} {fate:6} {self.seconds:5.0f} s  {self.said}"


def hunt(name: str) -> Fate:
    """Run one mutant in a process of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "tests.simulation.mutants", "--here", name]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    said = (done.stdout or done.stderr).strip().splitlines()
    seconds = time.perf_counter() - began
    return Fate(name, done.returncode == 0, said[-1] if said else "", seconds)


def hunt_all(names: Iterable[str] = (), processes: int = 2) -> Iterator[Fate]:
    """Run mutants, by default all of them, and yield the fate of each."""
    with ThreadPoolExecutor(processes) as pool:
        yield from pool.map(hunt, list(names) or MUTANTS)


def main() -> int:
    """Return 0 if every mutant was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which ones; all by default")
    parser.add_argument("--here", metavar="NAME", help="break one rule in this process")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.here is not None:
        found = seeds_needed(options.here, range(SEEDS_MAX))
        sys.stdout.write(f"{found[0]} seeds, {found[1]}" if found else f"no seed of {SEEDS_MAX}")
        return found is None
    survivors = 0
    for fate in hunt_all(options.names, options.processes):
        sys.stdout.write(f"{fate}\n")
        sys.stdout.flush()
        survivors += not fate.found
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
