"""Every awaited call of a two-tool turn fails, in every way, on every store; no promise is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.core.gates import Gates
from edge.core.outbox import Outbox
from edge.core.turn import EXECUTE
from edge.core.turn import Turn as WriterTurn
from tests.campaigns.crash_points import (
    FAULTS,
    PLOTS,
    Enumeration,
    Turn,
    enumerate_points,
)
from tests.campaigns.crash_store import Stores, firestore, memory, sqlite
from tests.campaigns.crash_world import Plot
from tests.campaigns.plan import Mode
from tests.support.faulty_calls import Fault
from tests.support.history import Kind

MODES: tuple[Mode, ...] = ("hold", "suspend")
BEFORE_AND_AFTER = (Fault.LOST, Fault.UNANSWERED, Fault.DIES_BEFORE, Fault.DIES_AFTER)
EVERY_TURN = {"create_session", "head", "turn", "append", "read", "renew", "open", "next", "info"}


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """The store that the test is for; skipped, and said to be, where there is no emulator."""
    if request.param == "sqlite":
        return sqlite(tmp_path)
    return firestore(request.getfixturevalue("emulator"))


def assert_kept(result: Enumeration, *, also: str = "open") -> None:
    """No promise was broken, and the points were those that a turn is made of."""
    assert not result.found, "\n".join(map(str, result.found))
    assert set(result.points) >= EVERY_TURN | {also}


@pytest.mark.proves("P-LOG-2", "P-LOG-3", "P-LOG-9", "P-RUN-4", "P-RUN-6", "P-HTTP-5")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_turn_survives_any_one_call_that_fails(mode: Mode, plot: Plot, fault: Fault) -> None:
    result = enumerate_points(Turn(stores=memory(), mode=mode, plot=plot), [fault])
    assert_kept(result, also="ack" if plot == "ends" else "cancel")


@pytest.mark.realtime
@pytest.mark.proves("P-LOG-9", "P-RUN-4", "P-RUN-6")
@pytest.mark.parametrize("fault", BEFORE_AND_AFTER, ids=lambda fault: fault.name)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "stores", ["sqlite", pytest.param("firestore", marks=pytest.mark.emulator)], indirect=True
)
def test_a_turn_on_a_real_store_survives_any_one_call_that_fails(
    stores: Stores, mode: Mode, fault: Fault
) -> None:
    assert_kept(enumerate_points(Turn(stores=stores, mode=mode), [fault]))


def test_a_gate_that_opens_before_the_commit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    open_through = Gates.open_through
    monkeypatch.setattr(Gates, "open_through", lambda self, _seq: open_through(self, 1 << 60))

    found = enumerate_points(Turn(stores=memory(), mode="hold"), [Fault.LOST]).found

    assert any("ran before that was durable" in violation.text for violation in found)


def test_a_tool_that_starts_behind_a_stop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outbox, "take_back_tool_starts", lambda _self: [])
    turn = Turn(stores=memory(), mode="hold", plot="is stopped elsewhere")

    found = enumerate_points(turn, [Fault.SLOW]).found

    assert Kind.STARTED_AFTER_STOP in {violation.kind for violation in found}


def test_a_call_that_runs_again_without_leave_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def allow_all(turn: WriterTurn) -> tuple[tuple[str, str], ...]:
        return tuple((name, EXECUTE) for name in turn.calls)

    monkeypatch.setattr(WriterTurn, "resolutions", allow_all)

    found = enumerate_points(Turn(stores=memory(), mode="hold"), [Fault.DIES_AFTER]).found

    assert Kind.TOOL_TWICE in {violation.kind for violation in found}
