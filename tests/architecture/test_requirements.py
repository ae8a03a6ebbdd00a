"""The requirements and the tests agree, in both directions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.requirements import CASES, GAPS, LATER
from tests.support.requirements_plugin import (
    PROTOCOL,
    all_requirements,
    disagreements,
    proofs,
    protocol_rules,
)


def test_every_requirement_is_proved_or_says_why_not() -> None:
    assert disagreements(all_requirements(), GAPS | LATER, proofs()) == []


def test_a_requirement_is_unproved_for_one_reason() -> None:
    assert GAPS.keys() & LATER.keys() == set()
    assert [id_ for id_, reason in (GAPS | LATER).items() if not reason.endswith(".")] == []


def test_only_cases_may_wait_for_later_work() -> None:
    assert LATER.keys() <= CASES.keys()


def test_every_rule_of_the_protocol_has_an_id_of_its_own() -> None:
    counts = Counter(id_ for id_, _ in protocol_rules(PROTOCOL.read_text()))
    assert counts
    assert [id_ for id_, count in counts.items() if count > 1] == []


def test_rules_are_read_from_the_text_of_the_protocol() -> None:
    text = (
        "Words.\n\n**P-SSE-1** A frame has one id.\n- **P-HTTP-12** 202 is said once.\n**bold** no"
    )

    assert protocol_rules(text) == [
        ("P-SSE-1", "A frame has one id."),
        ("P-HTTP-12", "202 is said once."),
    ]


def test_marks_are_found_on_functions_modules_and_parameters(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        'pytestmark = [pytest.mark.proves("A")]\n'
        '@pytest.mark.proves("B", "C")\n'
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.proves("D"))])\n'
        "def test_it(x): ...\n"
    )

    assert proofs(tmp_path) == {
        "A": ["test_it.py:2"],
        "B": ["test_it.py:3"],
        "C": ["test_it.py:3"],
        "D": ["test_it.py:4"],
    }


@pytest.mark.parametrize(
    ("unproved", "proved", "complaint"),
    [
        ({}, {}, "A: no test proves it"),
        ({"A": "Why."}, {"A": ["t.py:1"]}, "A: t.py:1 proves it"),
        ({}, {"A": ["t.py:1"], "B": ["t.py:2"]}, "B: there is no such requirement"),
        ({"A": "Why.", "B": "Why."}, {}, "B: listed as unproved"),
    ],
)
def test_a_disagreement_is_found(
    unproved: dict[str, str], proved: dict[str, list[str]], complaint: str
) -> None:
    (found,) = disagreements({"A": "It holds."}, unproved, proved)

    assert found.startswith(complaint)
