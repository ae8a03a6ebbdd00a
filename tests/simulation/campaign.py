"""Many seeds over several processes, and the sum of what happened.

Knows nothing of worlds. A campaign proves something only if what it is about took place: ``missing`` names
the faults and paths that were too rare.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from tests.simulation.run import Outcome, run_seed

CHUNK = 50

LEAST_PER_THOUSAND = {
    "ways_slow": 1_000,
    "requests_lost": 1_000,
    "requests_cut_off": 500,
    "requests_late": 100,
    "requests_repeated": 100,
    "answers_lost": 500,
    "appends_unknown": 200,
    "commits_late": 100,
    "commits_echoed": 50,
    "kills": 200,
    "pauses": 200,
    "rolls": 100,
    "blackouts": 40,
    "runtime_kills": 100,
    "runtime_pauses": 50,
    "takeovers": 200,
    "takeovers_of_the_dead": 40,
    "takeovers_of_the_paused": 10,
    "takeovers_of_the_living": 40,
    "spurious_expiries": 50,
    "rewinds": 25,
    "records_expired": 200,
    "resets_gap": 15,
    "resets_under_a_viewer": 2,
    "browsers": 2_000,
    "streams_in_company": 2_000,
    "client_drops": 1_000,
    "turns_started": 1_300,
    "cancels_accepted": 100,
    "cancels_done": 100,
    "double_posts": 100,
    "posts_replayed": 50,
    "answers": 20,
    "tool_runs": 300,
    "tools_in_parallel": 300,
    "idempotent_runs": 100,
    "acks": 200,
    "acks_missed": 20,
    "crashes": 50,
    "crashes_mid_text": 20,
    "drains_of_runtime": 20,
    "attempts_in_suspend_mode": 200,
    "suspensions_checkpoint": 50,
    "suspensions_input_required": 50,
    "tools_unknown": 10,
    "tools_not_executed": 10,
    "turns_cancelled_unwatched": 1,
    "epochs_after_the_first": 200,
}
"""How often each thing must have happened in a thousand runs, or they prove too little."""


@dataclass(slots=True)
class Summary:
    """The sum of many runs."""

    seeds: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.counts += outcome.counts
        if outcome.violations:
            self.failures.append(outcome)

    def missing(self) -> list[str]:
        """Return what happened too rarely for the runs to mean much."""
        return [
            f"{name}: {self.counts[name]} in {self.seeds} runs"
            for name, least in LEAST_PER_THOUSAND.items()
            if self.counts[name] * 1000 < least * self.seeds
        ]

    def text(self) -> str:
        """Return the sum as lines for people."""
        lines = [f"{self.seeds} seeds in {self.seconds:.0f} s, {len(self.failures)} failed"]
        lines += [f"  {name:28} {count:>10,}" for name, count in sorted(self.counts.items())]
        lines += [f"  too rare: {line}" for line in self.missing()]
        for outcome in self.failures[:20]:
            lines += [f"seed {outcome.seed}: {line}" for line in outcome.violations[:5]]
        if self.failures:
            lines.append(f"python -m tests.simulation --trace {self.failures[0].seed}")
        return "\n".join(lines)


def run_seeds(seeds: Iterable[int], *, until: float | None = None) -> Summary:
    """Run seeds in this process; stop early at ``until``, by the monotonic clock."""
    summary = Summary()
    for seed in seeds:
        if until is not None and time.monotonic() >= until:
            break
        summary.add(run_seed(seed))
    return summary


def run_campaign(
    first: int, count: int, *, processes: int, tell: Callable[[str], object] = lambda _line: None
) -> Summary:
    """Run ``count`` seeds from ``first`` on, over several processes; tell of each failure at once."""
    total, began = Summary(), time.perf_counter()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for part in pool.map(run_seeds, _chunks(first, count)):
            total.seeds += part.seeds
            total.counts += part.counts
            total.failures += part.failures
            for outcome in part.failures:
                tell(f"seed {outcome.seed} fails: {outcome.violations[0]}\n")
    total.seconds = time.perf_counter() - began
    return total


def _chunks(first: int, count: int) -> Iterator[range]:
    end = first + count
    return (range(n, min(n + CHUNK, end)) for n in range(first, end, CHUNK))
