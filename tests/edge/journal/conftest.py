"""The emulator, for the tests of what is particular to Firestore."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.firestore_emulator import fresh_project
from tests.support.journal_stores import FirestoreStore


@pytest.fixture
async def firestore(emulator: str) -> AsyncIterator[FirestoreStore]:
    """An emulated Firestore without data."""
    store = FirestoreStore(emulator, fresh_project())
    yield store
    await store.close()
