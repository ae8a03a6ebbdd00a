"""Runs SQLite jobs for an event loop: reads on one thread, writes on another, in group commits.

A commit costs one sync of the disk whatever is in it, so the writes that queued up while the last
commit was under way go together into the next one, each in its own savepoint: it succeeds or fails
by itself. A thousand sessions then need some dozens of syncs a second.

Knows nothing of the journal's SQL.

Invariants:

- a connection is opened, used and closed on its own thread only
- no caller owns a transaction, so a cancelled caller leaves none behind; its job may still run
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from edge.core.errors import JournalUnavailable
from edge.ports import AppendUnknown

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]

GROUP_LIMIT = 256
"""Jobs per transaction: other processes wait for the write lock meanwhile."""


class DatabaseThread:
    """A connection and the only thread that touches it."""

    def __init__(self, executor: ThreadPoolExecutor, db: sqlite3.Connection) -> None:
        self._executor = executor
        self._db = db
        self._closed = False

    @classmethod
    async def start(cls, name: str, connect: Callable[[], sqlite3.Connection]) -> DatabaseThread:
        """Start the thread and connect on it. Raises what ``connect`` raises."""
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        try:
            db = await asyncio.get_running_loop().run_in_executor(executor, connect)
        except BaseException:
            executor.shutdown(wait=False)
            raise
        return cls(executor, db)

    async def run(self, job: Job[T]) -> T:
        """Run a job that needs no transaction, after those asked for before.

        Raises:
            JournalUnavailable: SQLite failed, or the thread was closed.
        """
        if self._closed:
            raise JournalUnavailable("the journal is closed")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._executor, job, self._db)
        except sqlite3.Error as error:
            raise JournalUnavailable(str(error)) from error

    async def close(self) -> None:
        """Close the connection after the jobs asked for before, and end the thread."""
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._executor, self._db.close)
        self._executor.shutdown()


class GroupWriter:
    """Commits jobs in groups on one thread."""

    def __init__(self, thread: DatabaseThread) -> None:
        self._thread = thread
        self._waiting: list[tuple[Job[Any], asyncio.Future[Any]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._closed = False

    async def run(self, job: Job[T]) -> T:
        """Run a job in a savepoint and return its result once that is durable.

        Raises:
            JournalUnavailable: nothing was written.
            AppendUnknown: the commit itself failed.
        """
        if self._closed:
            raise JournalUnavailable("the journal is closed")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, done))
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit_all())
        return await done

    async def close(self) -> None:
        """Finish what is waiting, then close the thread."""
        self._closed = True
        if self._committing is not None:
            await asyncio.wait([self._committing])  # and not the task: it is others' as well
        await self._thread.close()

    async def _commit_all(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:GROUP_LIMIT], self._waiting[GROUP_LIMIT:]
            await self._commit([(job, done) for job, done in group if not done.cancelled()])
        self._committing = None

    async def _commit(self, group: Sequence[tuple[Job[Any], asyncio.Future[Any]]]) -> None:
        jobs = [job for job, _ in group]
        outcomes: Sequence[object]
        try:
            outcomes = await self._thread.run(partial(commit_group, jobs))
        except JournalUnavailable as error:  # even rolling back failed
            outcomes = [AppendUnknown(str(error)) for _ in jobs]
        for (_, done), outcome in zip(group, outcomes, strict=True):
            if done.cancelled():
                continue
            if isinstance(outcome, Exception):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)


def commit_group(jobs: Sequence[Job[Any]], db: sqlite3.Connection) -> Sequence[object]:
    """Run jobs in one transaction; return the result, or the exception, of each."""
    try:
        db.execute("BEGIN IMMEDIATE")
        outcomes = [_run_in_savepoint(db, job) for job in jobs]
    except sqlite3.Error as error:
        # The lock was not to be had, or the disk failed. Without a COMMIT nothing was written.
        _roll_back(db)
        return [JournalUnavailable(str(error)) for _ in jobs]
    try:
        db.execute("COMMIT")
    except sqlite3.Error as error:
        # How far the log came is for its next reader to find out.
        _roll_back(db)
        return [AppendUnknown(str(error)) for _ in jobs]
    return outcomes


def _run_in_savepoint(db: sqlite3.Connection, job: Job[Any]) -> object:
    db.execute("SAVEPOINT job")
    outcome: object
    try:
        outcome = job(db)
    except sqlite3.OperationalError:
        raise  # the lock or the disk: it concerns the whole group
    except Exception as refusal:  # noqa: BLE001 - it must reach its caller, and nobody else
        db.execute("ROLLBACK TO job")
        outcome = refusal
    db.execute("RELEASE job")
    return outcome


def _roll_back(db: sqlite3.Connection) -> None:
    if db.in_transaction:  # SQLite rolls some failures back by itself
        db.execute("ROLLBACK")
