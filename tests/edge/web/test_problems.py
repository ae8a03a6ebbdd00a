"""The problem table: every error has its answer, and no answer says more than it should."""

from __future__ import annotations

import json

import pytest

from edge.core import errors
from edge.core.errors import EdgeError, TurnInProgress
from edge.web.problems import KINDS, FieldError, Refused, problem_of

OURS = {"fenced", "log-broken", "internal-error"}
"""Codes that are our failure: a client is told no more than 500."""


def every_error() -> list[type[EdgeError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [error for error in found if issubclass(error, EdgeError) and "code" in vars(error)]


@pytest.mark.parametrize("error", every_error(), ids=lambda error: error.code)
def test_every_error_of_the_core_has_a_row_or_is_our_failure(error: type[EdgeError]) -> None:
    assert (error.code in KINDS) != (error.code in OURS - {"internal-error"})


@pytest.mark.proves("P-HTTP-1")
@pytest.mark.parametrize("code", KINDS)
def test_a_problem_is_what_rfc_9457_says(code: str) -> None:
    problem = problem_of(Refused(code))
    assert problem.headers["Content-Type"] == "application/problem+json"
    body = json.loads(problem.body)
    assert body["type"] == f"urn:unbroken:problem:{code}"
    assert body["status"] == problem.status == KINDS[code].status
    assert body["title"].endswith(".")
    assert ("Retry-After" in problem.headers) == (problem.status in (429, 503))


def test_a_failure_of_ours_says_nothing() -> None:
    class Secret(EdgeError):
        code = "hunter2"

    problem = problem_of(Secret("hunter2"))
    assert problem.status == 500
    assert b"hunter2" not in problem.body


def test_a_busy_session_names_its_turn() -> None:
    assert json.loads(problem_of(TurnInProgress("t1")).body)["turn_id"] == "t1"


def test_a_refused_body_names_its_places_and_a_refused_method_the_right_ones() -> None:
    errors_ = [FieldError("/input", "must be a string")]
    body = json.loads(problem_of(Refused("invalid-body", errors=errors_)).body)
    assert body["errors"] == [{"pointer": "/input", "detail": "must be a string"}]
    assert problem_of(Refused("method-not-allowed", allow=["POST", "GET"])).headers["Allow"] == (
        "GET, POST"
    )
