"""What troubles on links become in the table; they are staged in ``tests/faults/test_network.py``."""

from __future__ import annotations

from tests.campaigns.network import rows_of
from tests.campaigns.tally import total
from tests.faults.links import Episode, LinkName
from tests.support.history import History, Kind


def test_each_trouble_on_each_link_has_its_row() -> None:
    episodes = [
        Episode(link, "down", 1, [History(records=[]), History(records=[])])
        for link in (LinkName.BROWSER, LinkName.RUNTIME, LinkName.BROWSER)
    ]
    rows = total(rows_of(episodes, "SQLite, hold"))
    assert [(row.fault, row.count, row.histories) for row in rows] == [
        ("down between browser and edge (SQLite, hold)", 2, 4),
        ("down between edge and runtime (SQLite, hold)", 1, 2),
    ]


def test_a_trouble_that_ended_no_connection_though_it_should_was_not_staged() -> None:
    histories = [History(records=[])]
    [row] = rows_of([Episode(LinkName.STORE, "down", 0, histories)], "Firestore, hold")
    assert not row.clean
    [row] = rows_of([Episode(LinkName.STORE, "latency", 0, histories)], "Firestore, hold")
    assert row.clean


def test_a_turn_that_never_ends_is_a_broken_promise() -> None:
    episode = Episode(LinkName.STORE, "down", 1, [], ["the turn never ended"])
    [row] = rows_of([episode], "Firestore, hold")
    assert row.found == {Kind.OTHER: 1}
    assert not row.clean
