"""The simulation must notice every broken rule; the quickest are tried on every run."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS, hunt

QUICK = ("unsafe-rerun", "early-cancel-ack", "early-tool-ack", "kept-tool-start", "polled-cancel")


@pytest.mark.parametrize("name", QUICK)
def test_a_broken_rule_is_noticed_within_a_few_seeds(name: str) -> None:
    fate = hunt(name)
    assert fate.found, fate


@pytest.mark.realtime
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", sorted(MUTANTS.keys() - set(QUICK)))
def test_every_other_broken_rule_is_noticed_in_time(name: str) -> None:
    fate = hunt(name)
    assert fate.found, fate
