"""``python -m tests.campaigns kill --cycles 1000``: run a campaign, keep what it found, and say so.

``all`` runs every campaign with the figures of a release; ``page`` puts what is kept into docs/reliability.md,
which ``all`` does at its end. A run that is smaller than a release's is kept apart and never gets there. Exits with 1
if a promise was broken or a mutant survived.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.campaigns import report
from tests.campaigns.catalogue import CAMPAIGNS, Campaign, Found
from tests.campaigns.plan import Plan
from tests.support.firestore_emulator import Emulator, find_jar

KEPT = Path("var/reliability")
TRIALS = Path("var/trials")
"""What runs left that are too small for the page."""
RUNS = Path("var/campaigns")
"""Logs and evidence of a campaign; what was clean leaves none."""
PAGE = Path("docs/reliability.md")
NOT_RUN = "NOT RUN on Firestore: Google's emulator was not found."


def main() -> int:
    """Return 0 if every promise held."""
    # At once, whatever runs; a handler that asyncio knew as its own it would put off until its next turn.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    options = _options()
    names = list(CAMPAIGNS) if options.name == "all" else [options.name]
    broken = False
    for name in names if options.name != "page" else []:
        campaign = CAMPAIGNS[name]
        cycles = campaign.cycles if options.cycles is None else options.cycles
        found = _run(name, campaign, cycles, options.seed)
        kept = KEPT if cycles >= campaign.cycles else TRIALS
        report.save(kept, name, found.tallies, [*found.notes, *found.failures])
        _say(_summary(name, found))
        _say(f"Kept in {kept / name}.json.")
        broken |= not found.clean
    if options.name in ("all", "page"):
        report.write(KEPT, PAGE)
        _say(f"The tables are in {PAGE}.")
    return int(broken)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description=__doc__)
    parser.add_argument("name", choices=[*CAMPAIGNS, "all", "page"])
    parser.add_argument("--cycles", type=_positive, help="how often; by default as for a release")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _positive(text: str) -> int:
    """Read a number of cycles. Raises ``ArgumentTypeError`` for what is no whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number above 0")
    return int(text)


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _run(name: str, campaign: Campaign, cycles: int, seed: int) -> Found:
    RUNS.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=RUNS)).absolute()
    with _emulator(folder) if campaign.stores else nullcontext("") as emulator:
        plan = Plan(folder=folder, cycles=cycles, seed=seed, emulator=emulator, tell=_tell)
        found = asyncio.run(campaign.run(plan))
    if campaign.stores and not emulator:
        found.notes = [*found.notes, f"{name}: {NOT_RUN}"]
    if found.clean:
        shutil.rmtree(folder)
    return found


@contextmanager
def _emulator(folder: Path) -> Iterator[str]:
    """Run a Firestore emulator for one campaign, or say loudly that there is none."""
    jar = find_jar()
    if jar is None:
        _say(NOT_RUN)
        yield ""
        return
    emulator = Emulator(jar, folder / "emulator.log")
    emulator.start()
    try:
        yield emulator.host
    finally:
        emulator.kill()


def _summary(name: str, found: Found) -> str:
    told: Sequence[str] = [line for tally in found.tallies for line in tally.told]
    return "\n\n".join(
        part
        for part in (
            f"== {name}: {'every promise held' if found.clean else 'BROKEN'}",
            report.tables(found.tallies),
            "\n".join(found.notes),
            "\n".join([*found.failures, *told]),
        )
        if part
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
