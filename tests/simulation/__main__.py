"""``python -m tests.simulation --seeds 10000``: run many worlds, print what happened in them.

``--first N`` begins at another seed, ``--trace SEED`` runs one and prints one line per step; so is the first
that fails.
"""

from __future__ import annotations

import argparse
import sys

from tests.simulation.campaign import run_campaign
from tests.simulation.trace import traced


def main() -> int:
    """Return 0 if no run broke a promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--trace", type=int, metavar="SEED")
    options = parser.parse_args()
    if options.trace is not None:
        outcome = traced(options.trace, sys.stdout.write)
        found = map(str, outcome.violations)
        sys.stdout.write("\n".join(found) + "\n" if outcome.violations else "no violation\n")
        return bool(outcome.violations)
    summary = run_campaign(
        options.first, options.seeds, processes=options.processes, tell=sys.stderr.write
    )
    sys.stdout.write(summary.text() + "\n")
    for outcome in summary.failures[:1]:
        traced(outcome.seed, sys.stdout.write)
    return bool(summary.failures)


if __name__ == "__main__":
    sys.exit(main())
