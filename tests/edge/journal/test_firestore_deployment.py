"""The index configuration that is deployed names every field that the journal stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edge.journal.firestore_documents import (
    Names,
    head_creation,
    head_renewal,
    head_watch,
    record_creation,
    turn_creation,
)
from edge.ports import Renewal, TurnEntry
from tests.support.journal_records import acquire, cancel, events, resolve

DEPLOY = Path(__file__).parents[3] / "deploy"
NAMES = Names("projects/p/databases/(default)")


def stored_fields() -> set[tuple[str, str]]:
    """Every ``(collection, field)`` that some write stores."""
    head = NAMES.head("s1")
    creation = head_creation(head, "uid-1", 1)
    renewal = head_renewal(creation.update, Renewal(1, 1), 1)
    turn = turn_creation(NAMES.turn("s1", "t1"), TurnEntry("t1", "h", 1), 1)
    kinds = (acquire(1), events(1, 1), cancel(1), resolve(1))
    records = [record_creation(NAMES.record("s1", 1), record) for record in kinds]
    return {
        (write.update.name.split("/")[-2], field)
        for write in (creation, renewal, head_watch(head), turn, *records)
        for field in (*write.update.fields, *(t.field_path for t in write.update_transforms))
    }


def overrides() -> dict[tuple[str, str], dict[str, Any]]:
    """What is deployed, by ``(collection, field)``."""
    deployed = json.loads((DEPLOY / "firestore.indexes.json").read_text())
    return {
        (each["collectionGroup"], each["fieldPath"]): each for each in deployed["fieldOverrides"]
    }


def test_every_stored_field_is_named() -> None:
    assert overrides().keys() == stored_fields()


def test_only_the_field_that_is_searched_has_an_index() -> None:
    indexed = [place for place, override in overrides().items() if override["indexes"]]
    assert indexed == [("log", "last_seq")]


def test_every_collection_expires() -> None:
    expiring = {place for place, override in overrides().items() if override.get("ttl")}
    assert expiring == {(name, "expire_at") for name in ("agent_sessions", "log", "turns")}


def test_no_browser_may_reach_the_database() -> None:
    rules = (DEPLOY / "firestore.rules").read_text()
    assert rules.count("allow") == 1
    assert "allow read, write: if false;" in rules
