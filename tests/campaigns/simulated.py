"""The seeded simulation as a row of the table; the worlds themselves are ``tests.simulation``'s."""

from __future__ import annotations

import os
import sys

from tests.campaigns.tally import Tally
from tests.simulation.campaign import Summary, run_campaign

FAULT = "every fault at once, by seed"


def simulated(seeds: int) -> tuple[Tally, Summary]:
    """Run seeded worlds; return their row, and the sum of what happened in them."""
    summary = run_campaign(0, seeds, processes=os.cpu_count() or 1, tell=sys.stderr.write)
    tally = Tally("simulation", FAULT, count=summary.seeds, histories=summary.seeds)
    for outcome in summary.failures:
        tally.accuse(outcome.violations)
    return tally, summary
