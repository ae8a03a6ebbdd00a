"""The journal in Firestore: for many edges on many machines.

An append is one RPC that creates documents and reads none: nothing is locked, no document is hot.
The store's clock is Firestore's, taken from its answers.

Deliberately absent: transactions (a dead client's would lock a session for a minute), listeners (a
follower reads pages), retries (``edge.sessions`` settles an unknown outcome by reading its slot).

    agent_sessions/{session_id}                   head: owner and hints
    agent_sessions/{session_id}/log/{slot:010d}   one record each, create-only
    agent_sessions/{session_id}/turns/{turn_id}   turn entries, create-only

Every document has ``expire_at``, for a TTL policy. Removal may come a day late and in any order, so
readers go by the field.
"""

from __future__ import annotations

from collections.abc import Sequence

import grpc.aio
from google.api_core.exceptions import (
    Aborted,
    FailedPrecondition,
    GoogleAPICallError,
    NotFound,
)
from google.auth.credentials import Credentials
from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport

from edge.core.errors import JournalUnavailable
from edge.core.log import AnyRecord
from edge.journal import firestore_documents as documents
from edge.journal.firestore_batches import CreateBatches
from edge.journal.firestore_calls import Calls, Metadata
from edge.journal.rules import (
    LOG_RETENTION_SECONDS,
    check_append,
    head_expiry_ms,
    turn_expiry_ms,
)
from edge.ports import Clock, Head, Page, Renewal, TurnEntry

CHANNEL_OPTIONS = (
    # A link that died without a word is found in 40 s while calls are made on it.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # The default backs off to two minutes: a short outage must not outlast itself.
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
)

EMULATOR_METADATA: Metadata = (("authorization", "Bearer owner"),)
"""Without it the emulator answers ``BatchWrite`` as it would a browser: PERMISSION_DENIED."""

RENEW_ATTEMPTS = 3


class FirestoreJournal:
    """A ``Journal`` in a Firestore database."""

    def __init__(
        self,
        client: FirestoreAsyncClient,
        database: str,
        clock: Clock,
        *,
        metadata: Metadata = (),
        read_timeout_seconds: float = 5.0,
        write_timeout_seconds: float = 2.0,
        log_retention_seconds: float = LOG_RETENTION_SECONDS,
    ) -> None:
        """Use a client of the running event loop, and close it in the end.

        ``database`` is ``projects/{project}/databases/{database}``; ``clock`` dates new heads only.
        """
        self._calls = Calls(
            client,
            database,
            metadata=metadata,
            read_timeout_seconds=read_timeout_seconds,
            write_timeout_seconds=write_timeout_seconds,
        )
        self._batches = CreateBatches(self._calls)
        self._names = documents.Names(database)
        self._clock = clock
        self._log_retention_seconds = log_retention_seconds
        self._closed = False

    @classmethod
    def connect(
        cls,
        clock: Clock,
        *,
        project: str,
        database: str = "(default)",
        emulator_host: str | None = None,
        credentials: Credentials | None = None,
        log_retention_seconds: float = LOG_RETENTION_SECONDS,
    ) -> FirestoreJournal:
        """Make a channel in the running event loop; it connects when it is first used.

        ``emulator_host`` is ``host:port`` of an emulator, where no credentials are needed. Without
        it and without ``credentials`` the application default credentials are looked up, which may
        block for seconds where there are none.

        Raises:
            google.auth.exceptions.DefaultCredentialsError: there are none.
        """
        metadata: Metadata = ()
        if emulator_host:
            channel = grpc.aio.insecure_channel(emulator_host, options=CHANNEL_OPTIONS)
            metadata = EMULATOR_METADATA
        else:
            channel = FirestoreGrpcAsyncIOTransport.create_channel(
                FirestoreGrpcAsyncIOTransport.DEFAULT_HOST,
                credentials=credentials,
                options=CHANNEL_OPTIONS,
            )
        return cls(
            FirestoreAsyncClient(transport=FirestoreGrpcAsyncIOTransport(channel=channel)),
            f"projects/{project}/databases/{database}",
            clock,
            metadata=metadata,
            log_retention_seconds=log_retention_seconds,
        )

    async def create_session(self, session_id: str, owner: str) -> None:
        self._check_open()
        expiry = head_expiry_ms(self._clock.now_ms(), self._log_retention_seconds)
        name = self._names.head(session_id)
        await self._calls.create([documents.head_creation(name, owner, expiry)])

    async def head(self, session_id: str) -> Head | None:
        self._check_open()
        document, now_ms = await self._calls.get(self._names.head(session_id))
        if document is None or documents.expiry_ms(document) <= now_ms:
            return None
        return documents.read_head(document, now_ms)

    async def read(self, session_id: str, after_slot: int, limit: int) -> Page:
        self._check_open()
        live: list[AnyRecord] = []
        while True:
            # One more than asked for tells whether there is more.
            missing = limit + 1 - len(live)
            query = documents.records_query(self._names, session_id, after_slot, missing)
            found, now_ms = await self._calls.query(query)
            live += [documents.read_record(d) for d in found if documents.expiry_ms(d) > now_ms]
            if len(found) < missing or len(live) > limit:
                return Page(live[:limit], more=len(live) > limit)
            after_slot = documents.slot(found[-1])  # an expired prefix takes more than one query

    async def locate(self, session_id: str, seq: int) -> int | None:
        self._check_open()
        query = documents.locate_query(self._names, session_id, seq)
        found, now_ms = await self._calls.query(query)
        if not found:
            return None
        slot = documents.slot(found[0])
        if documents.expiry_ms(found[0]) > now_ms:
            return slot
        page = await self.read(session_id, slot, limit=1)
        return page.records[0].slot if page.records else None

    async def append(
        self, session_id: str, records: Sequence[AnyRecord], turn: TurnEntry | None = None
    ) -> None:
        check_append(records, turn)
        self._check_open()
        writes = [
            documents.record_creation(self._names.record(session_id, record.slot), record)
            for record in records
        ]
        if turn is not None:
            name = self._names.turn(session_id, turn.turn_id)
            writes.append(documents.turn_creation(name, turn, turn_expiry_ms(records)))
        if len(writes) == 1:
            await self._batches.create(writes[0])
        else:
            await self._calls.create(writes)

    async def turn(self, session_id: str, turn_id: str) -> TurnEntry | None:
        self._check_open()
        document, _ = await self._calls.get(self._names.turn(session_id, turn_id))
        return None if document is None else documents.read_turn(document)

    async def renew(self, session_id: str, renewal: Renewal) -> None:
        self._check_open()
        for _ in range(RENEW_ATTEMPTS):
            document, now_ms = await self._calls.get(self._names.head(session_id))
            if document is None or documents.expiry_ms(document) <= now_ms:
                return
            if renewal.epoch < documents.epoch(document):
                return
            expiry = head_expiry_ms(now_ms, self._log_retention_seconds)
            if await self._write_head(documents.head_renewal(document, renewal, expiry)):
                return
        # Others keep writing the head: a hint that is missed costs a rewind at worst.

    async def watch(self, session_id: str) -> None:
        self._check_open()
        await self._write_head(documents.head_watch(self._names.head(session_id)))

    async def check(self) -> None:
        self._check_open()
        await self._calls.get(self._names.head("check"))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._batches.close()
        await self._calls.close()

    async def _write_head(self, write: object) -> bool:
        """Write a head; ``False`` if it is not, or no longer, what the write expects."""
        try:
            await self._calls.commit([write])
        except (FailedPrecondition, NotFound, Aborted):
            return False
        except GoogleAPICallError as error:
            raise JournalUnavailable(type(error).__name__) from error
        return True

    def _check_open(self) -> None:
        if self._closed:
            raise JournalUnavailable("the journal is closed")
