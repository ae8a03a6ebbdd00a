"""``python -m tests.simulation.model``: search the small worlds; ``--all`` the large ones too, ``--mutants`` instead.

Prints a line per world, and the way to a fault where one is found. Exits with 1 unless everything is as it
should be.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.model.budgets import LARGE, MIDDLE, SMALL
from tests.simulation.model.explore import Outcome
from tests.simulation.model.jobs import Job, describe, search
from tests.simulation.model.mutants import HARMLESS, MUTANTS
from tests.simulation.model.rules import PROTOCOL


def main() -> int:
    """Run the searches that were asked for, and return the exit code."""
    given = _arguments()
    jobs = list(_mutants() if given.mutants else _worlds(given.all))
    bad = 0
    _say(f"{'':<4} {'states':>9} {'steps':>9} {'depth':>5} {'s':>7}  world")
    for job, outcome in _search(jobs, given.jobs):
        good = job.succeeded(outcome)
        bad += not good
        figures = f"{outcome.states:>9,} {outcome.transitions:>9,} {outcome.depth:>5}"
        said = f"  -> {outcome.fault}" if outcome.fault else ""
        _say(f"{'ok' if good else 'BAD':<4} {figures} {outcome.seconds:>7.1f}  {job.name}{said}")
        if not good or given.trace:
            _say("\n".join(f"     {line}" for line in outcome.trace))
    _say(f"{len(jobs)} searches, {bad} not as they should be")
    return int(bad > 0)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.model", description=__doc__)
    parser.add_argument("--all", action="store_true", help="search the large worlds too: an hour")
    parser.add_argument("--mutants", action="store_true", help="break every rule, one by one")
    parser.add_argument("--trace", action="store_true", help="print the way to every fault")
    parser.add_argument("--jobs", type=int, default=1, help="searches at once, up to 2 GiB each")
    return parser.parse_args()


def _worlds(large: bool) -> Iterator[Job]:
    for size in (*SMALL, *MIDDLE, *LARGE) if large else SMALL:
        yield Job(describe(size.scope), PROTOCOL, size.scope, states=size.states)


def _mutants() -> Iterator[Job]:
    for mutant in MUTANTS:
        yield Job(mutant.name, mutant.rules, mutant.scope, mutant.violates)
    for mutant in HARMLESS:
        yield Job(f"{mutant.name} (harmless: {mutant.violates})", mutant.rules, mutant.scope)


def _search(jobs: Iterable[Job], at_once: int) -> Iterator[tuple[Job, Outcome]]:
    """Search each world in a process of its own, which takes its memory with it."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(at_once, fresh, max_tasks_per_child=1) as pool:
        waiting = [(job, pool.submit(search, job)) for job in jobs]
        for job, outcome in waiting:
            yield job, outcome.result()


if __name__ == "__main__":
    raise SystemExit(main())
