"""Every rule is needed: each one broken alone violates a property, or is known to be covered by another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import get_args, get_type_hints

import pytest

from tests.simulation.model.explore import Search
from tests.simulation.model.mutants import HARMLESS, MUTANTS, Mutant
from tests.simulation.model.rules import PROTOCOL, Rules
from tests.simulation.model.state import World

_QUICK = [mutant for mutant in MUTANTS if not mutant.slow]
_SLOW = [mutant for mutant in MUTANTS if mutant.slow]


def _name(mutant: Mutant) -> str:
    return mutant.name


def _find(mutant: Mutant) -> None:
    outcome = Search(World(mutant.rules, mutant.scope)).run()

    assert outcome.fault is not None
    assert outcome.fault.split()[0] == mutant.violates, "\n".join(outcome.trace)


@pytest.mark.parametrize("mutant", _QUICK, ids=_name)
def test_a_broken_rule_is_found(mutant: Mutant) -> None:
    _find(mutant)


@pytest.mark.realtime
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", _SLOW, ids=_name)
def test_a_broken_rule_that_hides_is_found(mutant: Mutant) -> None:
    _find(mutant)


@pytest.mark.realtime
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", HARMLESS, ids=_name)
def test_a_rule_that_another_one_covers_can_be_broken_alone(mutant: Mutant) -> None:
    outcome = Search(World(mutant.rules, mutant.scope)).run()

    assert outcome.complete, outcome.fault


def _ways_to_break_a_rule() -> Iterator[tuple[str, object]]:
    hints = get_type_hints(Rules)
    for field in fields(Rules):
        right = getattr(PROTOCOL, field.name)
        values = (True, False) if hints[field.name] is bool else get_args(hints[field.name])
        yield from ((field.name, value) for value in values if value != right)


def test_every_way_to_break_a_rule_has_a_mutant() -> None:
    tried = {
        (field.name, getattr(mutant.rules, field.name))
        for mutant in (*MUTANTS, *HARMLESS)
        for field in fields(Rules)
    }

    assert [way for way in _ways_to_break_a_rule() if way not in tried] == []


def test_a_mutant_breaks_one_rule() -> None:
    for mutant in (*MUTANTS, *HARMLESS):
        broken = [
            f for f in fields(Rules) if getattr(mutant.rules, f.name) != getattr(PROTOCOL, f.name)
        ]
        assert len(broken) == 1, mutant.name
