"""Gates: opened once, by what is durable, and cumulatively."""

from __future__ import annotations

from edge.core.gates import Gates


def test_only_what_is_durable_is_opened_and_the_newest_index_covers_it() -> None:
    gates = Gates()
    gates.shut("c1", seq=5, index=2)
    gates.shut("c2", seq=6, index=3)
    gates.shut("c3", seq=9, index=6)
    assert gates.open_through(4) is None
    assert gates.open_through(8) == 3
    assert gates.call_ids == {"c3"}
    assert gates.open_through(8) is None, "each gate is opened once"
    assert gates.open_through(9) == 6


def test_a_call_leaves_the_gates_when_it_is_opened_or_taken_back() -> None:
    gates = Gates()
    gates.shut("c1", seq=5, index=2)
    gates.shut("c2", seq=6, index=3)
    assert "c1" in gates
    gates.forget("c1")
    gates.forget("never there")
    assert "c1" not in gates
    gates.clear()
    assert gates.call_ids == frozenset()
    assert gates.open_through(99) is None
