"""The protocol keeps every property in every order of every fault, within the bounds of the worlds searched."""

from __future__ import annotations

import pytest

from tests.simulation.model.budgets import MIDDLE, SMALL, Size
from tests.simulation.model.explore import Search
from tests.simulation.model.jobs import describe
from tests.simulation.model.rules import PROTOCOL, Rules
from tests.simulation.model.state import Budget, Scope, World
from tests.simulation.model.witnesses import endings, happenings


def _name(size: Size) -> str:
    return describe(size.scope)


def _search_to_the_end(size: Size) -> None:
    outcome = Search(World(PROTOCOL, size.scope)).run()

    assert outcome.fault is None, "\n".join(outcome.trace)
    assert outcome.complete
    assert outcome.states == size.states


@pytest.mark.parametrize("size", SMALL, ids=_name)
def test_no_order_of_faults_violates_a_property(size: Size) -> None:
    _search_to_the_end(size)


@pytest.mark.realtime
@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", MIDDLE, ids=_name)
def test_no_order_of_more_faults_violates_a_property(size: Size) -> None:
    _search_to_the_end(size)


def test_a_search_that_was_stopped_does_not_count_as_complete() -> None:
    outcome = Search(World(PROTOCOL, Scope(budget=Budget(crash=1))), limit=100).run()

    assert not outcome.complete
    assert outcome.fault is None


def test_a_fault_comes_with_the_shortest_way_to_it() -> None:
    outcome = Search(World(Rules(tool_waits=False), Scope(tokens_before=0))).run()

    assert [line.split("  ")[0] for line in outcome.trace] == [
        "A numbers 1S as seq 1",
        "A RUNS THE TOOL",
    ]


def test_everything_that_the_log_has_an_answer_to_happens() -> None:
    told: set[str] = set()
    for budget in (
        Budget(takeover=1, timeout=1),
        Budget(takeover=1, drop=1),
        Budget(cancel=1, timeout=1),
        Budget(timeout=1, redelivery=1),
    ):
        told |= happenings(World(PROTOCOL, Scope(budget=budget, tokens_before=0)))

    assert [
        words
        for words in (
            "ALREADY_EXISTS",
            "LATE",
            "reply lost",
            "finds its slot free, resends the identical record",
            "finds its slot free, resends the identical ACQUIRE",
            "own record, committed",
            "its ACQUIRE is there",
            "lost the slot",
            "fenced, drops its buffer",
            "append is in flight: fenced",
            "resolves the open stream again",
            "reads a CANCEL: acknowledged",
            "reads the terminal: nothing to cancel",
        )
        if not any(words in line for line in told)
    ] == []


def test_a_turn_in_the_runtime_ends_in_every_way_there_is() -> None:
    scope = Scope(
        budget=Budget(cancel=1, suspension=1, stream_break=1), tokens_before=0, attempts=3
    )

    found = endings(World(PROTOCOL, scope))

    assert found >= {
        ("OSED", 1),  # it went well
        ("OSPAED", 1),  # it waited at its checkpoint, and ran in the next attempt
        ("OSAED", 1),  # its stream broke at a gate that nobody had opened
        ("OSAXD", 0),  # its stream broke behind an open gate, and the tool did not run
        ("OSAXD", 1),  # the same, and it ran
        ("OSPAAXD", 1),  # a permission is good for one attempt
        ("OD", 0),  # it was stopped before its tool
        ("OSND", 0),  # it was stopped at the gate
        ("OSPND", 0),  # it was stopped at its checkpoint
        ("OSXD", 1),  # it was stopped, and nobody waited for the tool
    }
    assert all(runs == 0 for kinds, runs in found if "N" in kinds)


def test_a_second_turn_is_opened_by_the_holder_and_by_others() -> None:
    told = happenings(World(PROTOCOL, Scope(tokens_before=0, attempts=1, turns=2)))

    assert {"A opens a turn", "B opens a turn: sends to slot"} <= told
