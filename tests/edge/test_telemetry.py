"""Telemetry: names come from one table, and a log line carries no content."""

from __future__ import annotations

import ast
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.telemetry import METRICS, JsonFormatter, Metrics

EDGE = Path(__file__).parents[2] / "edge"


def _counted_names() -> Iterator[tuple[str, str]]:
    for path in EDGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr in ("count", "gauge") and "telemetry" in ast.unparse(node.func.value):
                for constant in ast.walk(node.args[0]):
                    if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                        yield node.func.attr, constant.value


def test_the_table_names_exactly_what_the_code_counts() -> None:
    kinds = {"count": "counter", "gauge": "gauge"}
    assert {(name, kinds[call]) for call, name in _counted_names()} == {
        (name, kind) for name, (kind, _) in METRICS.items()
    }


def test_metrics_are_rendered_in_the_text_format() -> None:
    metrics = Metrics()
    metrics.count("turns_started")
    metrics.count("turns_started")
    metrics.gauge("streams", 7)
    lines = metrics.render().splitlines()
    assert "unbroken_turns_started_total 2" in lines
    assert "unbroken_streams 7" in lines
    assert "# TYPE unbroken_streams gauge" in lines
    assert all(line.startswith(("# HELP ", "# TYPE ", "unbroken_")) for line in lines)


def test_a_name_outside_of_the_table_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Metrics().count("nonsense")


def formatted(record: logging.LogRecord) -> dict[str, object]:
    line = JsonFormatter().format(record)
    assert "\n" not in line
    return json.loads(line)  # type: ignore[no-any-return]


def test_a_log_line_is_one_json_object_with_allowed_fields_only() -> None:
    logger = logging.getLogger("edge.web")
    extra = {"code": "draining", "prompt": "hunter2"}
    record = logger.makeRecord(
        "edge.web", logging.WARNING, "f", 1, "a stream ended", (), None, extra=extra
    )
    line = formatted(record)
    assert (line["severity"], line["message"], line["code"]) == (
        "WARNING",
        "a stream ended",
        "draining",
    )
    assert "hunter2" not in json.dumps(line)


def test_an_exception_is_logged_by_its_type_and_place_and_not_by_its_text() -> None:
    try:
        raise ValueError("hunter2")
    except ValueError:
        record = logging.LogRecord("edge.web", 40, "f", 1, "failed", (), sys.exc_info())
    line = formatted(record)
    assert line["error"] == "ValueError"
    assert "test_telemetry.py:" in str(line["at"])
    assert "hunter2" not in json.dumps(line)


def test_a_librarys_message_is_cut_to_its_fixed_part() -> None:
    text = "Task exception was never retrieved\nfuture: <Task exception=ValueError('hunter2')>"
    record = logging.LogRecord("asyncio", 40, "f", 1, text, (), None)
    assert formatted(record)["message"] == "Task exception was never retrieved"
    record = logging.LogRecord("grpc", 30, "f", 1, "got %s", ("hunter2",), None)
    assert formatted(record)["message"] == "got %s"
