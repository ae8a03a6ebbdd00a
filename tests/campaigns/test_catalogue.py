"""Every campaign has its verb, and is said to be clean only if something was looked at."""

from __future__ import annotations

import re

import pytest

from tests.architecture.source import ROOT
from tests.campaigns.catalogue import CAMPAIGNS, Found
from tests.campaigns.tally import Tally


def test_make_has_a_verb_for_every_campaign() -> None:
    makefile = (ROOT / "Makefile").read_text()
    rule = re.search(r"^([a-z -]+):\n\t\S+ -m tests\.campaigns \$@", makefile, re.MULTILINE)
    assert rule is not None
    # The simulation counts seeds, so it has a rule of its own.
    assert {*rule[1].split(), "sim"} == set(CAMPAIGNS)
    described = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert set(CAMPAIGNS) <= described


@pytest.mark.parametrize(
    "found",
    [
        Found(),
        Found([Tally("a", "b")]),
        Found([Tally("a", "b", 1, 1)], failures=["something else"]),
    ],
)
def test_a_campaign_that_looked_at_nothing_is_not_clean(found: Found) -> None:
    assert not found.clean


def test_a_campaign_of_clean_rows_or_of_found_mutants_is_clean() -> None:
    assert Found([Tally("a", "b", 1, 1)]).clean
    assert Found(notes=["all mutants were found"]).clean
