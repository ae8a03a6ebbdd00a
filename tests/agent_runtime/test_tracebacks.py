"""How much of an exception the runtime's log tells: places by default, everything only if asked to."""

from __future__ import annotations

import logging
import sys

import pytest

from agent_runtime.__main__ import PlainFormatter
from agent_runtime.config import Config, ConfigError


def formatted(*, tracebacks: bool) -> str:
    try:
        raise ValueError("the user's secret")
    except ValueError:
        record = logging.LogRecord(
            "agent_runtime.attempt",
            logging.WARNING,
            __file__,
            1,
            "agent failed",
            (),
            sys.exc_info(),
        )
    return PlainFormatter(tracebacks=tracebacks).format(record)


def test_an_exception_is_told_by_its_type_and_place_alone() -> None:
    line = formatted(tracebacks=False)
    assert "ValueError at test_tracebacks.py:" in line
    assert "secret" not in line
    assert "\n" not in line


def test_an_author_can_ask_for_all_of_it_but_never_in_production() -> None:
    assert "the user's secret" in formatted(tracebacks=True)
    assert Config.from_environment({"AGENT_RUNTIME_TRACEBACKS": "1"}).tracebacks
    with pytest.raises(ConfigError, match="AGENT_RUNTIME_TRACEBACKS"):
        Config.from_environment({"AGENT_RUNTIME_TRACEBACKS": "1", "K_SERVICE": "s"})
    with pytest.raises(ConfigError, match="AGENT_RUNTIME_TRACEBACKS"):
        Config.from_environment({"AGENT_RUNTIME_TRACEBACKS": "yes"})
