"""Runs each test of this folder once per store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge.ports import Journal
from tests.support.firestore_emulator import fresh_project
from tests.support.journal_stores import FirestoreStore, MemoryStore, SqliteStore, Store


@pytest.fixture(params=["memory", "sqlite", pytest.param("firestore", marks=pytest.mark.emulator)])
def fresh_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store without data, of each kind in turn."""
    if request.param == "memory":
        return MemoryStore()
    if request.param == "sqlite":
        return SqliteStore(tmp_path / "journal.db")
    return FirestoreStore(request.getfixturevalue("emulator"), fresh_project())


@pytest.fixture
async def store(fresh_store: Store) -> AsyncIterator[Store]:
    """The store, closed after the test."""
    yield fresh_store
    await fresh_store.close()


@pytest.fixture
async def journal(store: Store) -> Journal:
    """A journal of the store."""
    return await store.open()
