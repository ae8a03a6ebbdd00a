"""``python -m tests.benchmarks``, or ``make bench``: measure here and print two tables."""

from __future__ import annotations

import argparse
import asyncio

from tests.benchmarks import micro, pipes, report
from tests.benchmarks.load_client import Window

_BASELINE = "recipe, uvloop"


def main() -> None:
    """Measure the pipes in turn, as often as asked, then the single steps."""
    given = _arguments()
    print(report.facts(), flush=True)
    load = pipes.Load(given.turns, given.rate, given.seconds)
    print(
        f"\n{load.turns} turns x {load.rate:g} tokens/s, "
        f"{given.rounds} rounds of {load.seconds:g} s each:",
        flush=True,
    )
    with pipes.emulator() as host:
        if host is None:
            print("NOT RUN: the Firestore emulator was not found")
        runs = asyncio.run(_measure(load, given.rounds, host))
    print(report.pipes_table(runs, _BASELINE), flush=True)
    print("\n" + report.micro_table(asyncio.run(micro.measure())))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--turns", type=int, default=200, help="turns at once")
    parser.add_argument("--rate", type=float, default=20.0, help="tokens a second in each turn")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=2, help="measurements of each pipe")
    return parser.parse_args()


async def _measure(
    load: pipes.Load, rounds: int, emulator_host: str | None
) -> dict[str, list[Window]]:
    """Take the pipes in turn, so that a busy minute of the machine is shared by all."""
    async with pipes.load_runtime(load.rate) as upstream:
        compared = pipes.pipes(upstream, load, emulator_host)
        runs: dict[str, list[Window]] = {pipe.name: [] for pipe in compared}
        for _ in range(rounds):
            for pipe in compared:
                try:
                    runs[pipe.name].append(await pipes.run(pipe, upstream, load))
                except pipes.NotMeasured as failure:
                    print(f"NOT MEASURED: {pipe.name}: {failure}", flush=True)
    return runs


if __name__ == "__main__":
    main()
