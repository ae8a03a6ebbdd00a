"""The RPCs of the Firestore journal: one attempt each, with a deadline, and what came of it.

Knows nothing of records. Nothing here retries: a second attempt of a commit that was applied would
be answered ``ALREADY_EXISTS``, and its caller would take its own record for somebody else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.api_core.exceptions import AlreadyExists, GoogleAPICallError, InvalidArgument
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.types import (
    BatchGetDocumentsRequest,
    BatchGetDocumentsResponse,
    BatchWriteRequest,
    BatchWriteResponse,
    CommitRequest,
    RunQueryRequest,
    RunQueryResponse,
)
from grpc import StatusCode

from edge.core.errors import EdgeError, JournalUnavailable
from edge.journal.firestore_documents import RawBatchGet, RawBatchWrite, RawCommit
from edge.ports import AppendRefused, AppendUnknown, SlotTaken

Metadata = tuple[tuple[str, str], ...]

_DEFINITE_ERRORS = {
    StatusCode.ALREADY_EXISTS.value[0]: SlotTaken,
    StatusCode.INVALID_ARGUMENT.value[0]: AppendRefused,
}


class Calls:
    """A database, and how long to wait for it."""

    def __init__(
        self,
        client: FirestoreAsyncClient,
        database: str,
        *,
        metadata: Metadata,
        read_timeout_seconds: float,
        write_timeout_seconds: float,
    ) -> None:
        self._client = client
        self._database = database
        self._read_timeout_seconds = read_timeout_seconds
        self._write_timeout_seconds = write_timeout_seconds
        # What the client library sends as well: without it the call is routed by luck.
        self._metadata = (("google-cloud-resource-prefix", database), *metadata)

    async def get(self, name: str) -> tuple[Any | None, int]:
        """Read a document, if it exists, and the store's time in milliseconds.

        Raises:
            JournalUnavailable: there was no answer.
        """
        request = RawBatchGet(database=self._database, documents=[name])
        try:
            answers = await self._client.batch_get_documents(
                request=BatchGetDocumentsRequest.wrap(request),
                retry=None,
                timeout=self._read_timeout_seconds,
                metadata=self._metadata,
            )
            [answer] = [BatchGetDocumentsResponse.pb(each) async for each in answers]
        except GoogleAPICallError as error:
            raise JournalUnavailable(_name_of(error)) from error
        document = answer.found if answer.HasField("found") else None
        return document, answer.read_time.ToMilliseconds()

    async def query(self, query: Any) -> tuple[Sequence[Any], int]:
        """Run a query; return its documents and the store's time in milliseconds.

        Raises:
            JournalUnavailable: there was no answer, or only a part of it.
        """
        try:
            stream = await self._client.run_query(
                request=RunQueryRequest.wrap(query),
                retry=None,
                timeout=self._read_timeout_seconds,
                metadata=self._metadata,
            )
            answers = [RunQueryResponse.pb(each) async for each in stream]
        except GoogleAPICallError as error:
            raise JournalUnavailable(_name_of(error)) from error
        documents = [answer.document for answer in answers if answer.HasField("document")]
        return documents, max(answer.read_time.ToMilliseconds() for answer in answers)

    async def commit(self, writes: Sequence[Any]) -> None:
        """Apply writes, all or nothing. Raises ``GoogleAPICallError``."""
        request = RawCommit(database=self._database, writes=writes)
        await self._client.commit(
            request=CommitRequest.wrap(request),
            retry=None,
            timeout=self._write_timeout_seconds,
            metadata=self._metadata,
        )

    async def create(self, writes: Sequence[Any]) -> None:
        """Create documents, all or nothing. Raises ``SlotTaken`` and its kin, as an append does."""
        try:
            await self.commit(writes)
        except AlreadyExists as error:
            raise SlotTaken from error
        except InvalidArgument as error:
            raise AppendRefused(_name_of(error)) from error
        except GoogleAPICallError as error:
            raise AppendUnknown(_name_of(error)) from error

    async def create_each(self, writes: Sequence[Any]) -> Sequence[EdgeError | None]:
        """Create documents, each for itself; return what went wrong with each.

        Raises:
            AppendRefused: the request was refused as a whole.
            AppendUnknown: each of them may have been created, or may yet be.
        """
        request = RawBatchWrite(database=self._database, writes=writes)
        try:
            answer = await self._client.batch_write(
                request=BatchWriteRequest.wrap(request),
                retry=None,
                timeout=self._write_timeout_seconds,
                metadata=self._metadata,
            )
        except InvalidArgument as error:
            raise AppendRefused(_name_of(error)) from error
        except GoogleAPICallError as error:
            raise AppendUnknown(_name_of(error)) from error
        return [_outcome(status.code) for status in BatchWriteResponse.pb(answer).status]

    async def close(self) -> None:
        """Close the channel."""
        transport: Any = self._client.transport  # its ``close`` has no types
        await transport.close()


def _outcome(code: int) -> EdgeError | None:
    if code == StatusCode.OK.value[0]:
        return None
    return _DEFINITE_ERRORS.get(code, AppendUnknown)(f"status {code}")


def _name_of(error: GoogleAPICallError) -> str:
    """Name the status alone: a server's message may quote document names."""
    return type(error).__name__ if error.grpc_status_code is None else error.grpc_status_code.name
