"""The writer: one connection on one thread, many waiting jobs, one commit for all that wait."""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from lomi.core.failpoints import Failpoints
from lomi.store.connection import Connection
from lomi.store.failure import ReceiptExists, RuleBroken, StoreError, StoreUnavailable, failure_reason
from lomi.store.witness import Witness

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
Told = Callable[[Exception | None], None]
"""Called in the loop with what became of a write, also when nobody waits any more; None is durable."""

_BATCH = 256
# After these the pages in memory and on disk may differ: only a restart, which verifies everything, may go on.
_BEYOND_DOUBT = frozenset(
    {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
)
# A value that SQLite can't take is the fault of that job alone.
_FAULTS = (sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.DataError, ValueError, TypeError, OverflowError)
_LOG_LOOKED_AT = 256
_UNIQUE = frozenset({sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})


class _Job(Generic[T]):
    __slots__ = ("failure", "future", "result", "single", "told", "work")

    def __init__(self, work: Work[T], future: "asyncio.Future[T]", *, single: bool, told: Told | None) -> None:
        self.work = work
        self.told = told
        self.single = single
        self.future = future
        self.result: T
        self.failure: Exception | None = None

    def resolve(self) -> None:
        """Pass on what became of it; to who waits also where `told` raises."""
        try:
            if self.told is not None:
                self.told(self.failure)
        finally:
            if not self.future.done():
                if self.failure is None:
                    self.future.set_result(self.result)
                else:
                    self.future.set_exception(self.failure)


def _resolve(jobs: Sequence[_Job[Any]]) -> None:
    """Pass on what became of each; one whose `told` raises costs no other. What it raised comes out at the end."""
    done = 0
    try:
        for job in jobs:
            done += 1
            job.resolve()
    finally:
        if done < len(jobs):
            _resolve(jobs[done:])


class Writer:
    """Owns the writing connection. `run` is its life; `put` may be called from anywhere in the loop."""

    def __init__(
        self,
        connection: Connection,
        *,
        path: Path,
        witness: Witness,
        sequence: int,
        namespace: bytes,
        failpoints: Failpoints,
        wal_bytes: int,
    ) -> None:
        self._connection = connection
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._wal_bytes = wal_bytes
        self._witness = witness
        self._sequence = sequence
        self._namespace = namespace
        self._failpoints = failpoints
        self._waiting: deque[_Job[Any]] = deque()
        self._ended = asyncio.Event()
        self._broken: BaseException | None = None
        self._committing = False
        self._ending = False
        self._doubt = False
        self.pages = 0
        """Pages in use after the last commit."""
        self.commits = 0
        """Commits since the start."""

    def put(self, work: Work[T], *, single: bool = False, told: Told | None = None) -> "asyncio.Future[T]":
        """Queue `work`; the future resolves when it is durable, or fails when nothing of it is stored.

        Cancelling the future does not take the work back. `work` runs on the connection's thread, inside a transaction.
        `single` says that it runs one statement, which SQLite undoes by itself when it fails: that saves a savepoint.

        Raises (through the future):
            StoreUnavailable: it could not be made durable.
            StoreError: it broke a rule; neighbours in the same commit are not touched.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        # Whoever stopped waiting must not make the loop complain about a failure that nobody fetched.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        job = _Job(work, future, single=single, told=told)
        if self._ending or self._doubt:
            job.failure = StoreUnavailable("store_failed")
            job.resolve()
        else:
            self._waiting.append(job)
            if not self._committing:
                self._begin()
        return future

    async def run(self) -> None:
        """Live until `end`; leaves nothing waiting. Commits begin by themselves, with the first job that waits.

        Raises:
            Exception: the writing connection failed in a way that is no failure of the disk.
        """
        try:
            await self._ended.wait()
            if self._broken is not None:
                raise self._broken
        finally:
            self._ending = True
            left = tuple(self._waiting)
            self._waiting.clear()
            for job in left:
                job.failure = StoreUnavailable("store_failed")
            _resolve(left)

    def _begin(self) -> None:
        self._committing = True
        self._connection.visit_soon(self._commit_waiting, self._committed)

    def _commit_waiting(self, connection: sqlite3.Connection) -> list[_Job[Any]]:
        """On the connection's thread: all that waits by now goes into one commit."""
        batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _BATCH))]
        try:
            self._commit_all(batch, connection)
        except BaseException:
            self._waiting.extendleft(reversed(batch))
            raise
        return batch

    def _committed(self, ended: list[_Job[Any]] | BaseException) -> None:
        self._committing = False
        try:
            if isinstance(ended, BaseException):
                self._broken, self._ending = ended, True
            else:
                _resolve(ended)
        finally:
            self._go_on()

    def _go_on(self) -> None:
        if self._waiting and self._broken is None:
            if not self._committing:
                self._begin()
        elif self._ending:
            self._ended.set()

    def end(self) -> None:
        """Take no more work; `run` returns when what waits is committed."""
        self._ending = True
        if not self._committing:
            self._ended.set()

    def _commit_all(self, batch: list[_Job[Any]], connection: sqlite3.Connection) -> None:
        if self._commit(connection, batch) or len(batch) == 1:
            return
        # The commit as a whole failed. One job may be what the disk had no room for: each gets its own chance.
        for job in batch:
            if not self._doubt:
                self._commit(connection, [job])

    def _commit(self, connection: sqlite3.Connection, batch: list[_Job[Any]]) -> bool:
        """Run the jobs in one transaction; False when none of them is stored because storage failed."""
        try:
            self._bound_log(connection)
            connection.execute("BEGIN IMMEDIATE")
            for job in batch:
                job.failure = None
                self._try(connection, job)
            if all(job.failure is not None for job in batch):
                connection.execute("ROLLBACK")
                return True
            connection.execute("UPDATE ledger SET sequence = ?", (self._sequence + 1,))
            ((used,),) = connection.execute("PRAGMA page_count")
            ((free,),) = connection.execute("PRAGMA freelist_count")
            self._failpoints.reach("before_commit")
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            unavailable = StoreUnavailable(self._reason(error))
            for job in batch:
                job.failure = job.failure or unavailable
            return False
        finally:
            if connection.in_transaction:
                self._roll_back(connection)
        self._failpoints.reach("after_commit")
        self._sequence += 1
        self.pages = used - free
        self.commits += 1
        self._note()
        return True

    def _try(self, connection: sqlite3.Connection, job: _Job[Any]) -> None:
        if not job.single:
            connection.execute("SAVEPOINT job")
        try:
            job.result = job.work(connection)
        except StoreError as error:
            job.failure = error
        except sqlite3.IntegrityError as error:
            job.failure = _translate(error)
        except _FAULTS as error:
            job.failure = error
        if job.single:
            return
        if job.failure is not None:
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._doubt = True

    def _bound_log(self, connection: sqlite3.Connection) -> None:
        """Readers can keep the log from beginning anew, and one over its bound would be refused at the next opening."""
        if self.commits % _LOG_LOOKED_AT or not self._log.exists():
            return
        if self._log.stat().st_size > self._wal_bytes // 2:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _note(self) -> None:
        try:
            self._witness.note(self._sequence, self._namespace)
        except OSError:
            # The commit stands; a witness that lags only sees less.
            return

    def _reason(self, error: sqlite3.Error) -> str:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code in _BEYOND_DOUBT:
            self._doubt = True
        return failure_reason(error, self._path)


def _translate(error: sqlite3.IntegrityError) -> Exception:
    """A refusal by a trigger names its rule as `lomi:<rule>`; a taken retry identity is a unique index that refused."""
    mark, _, rule = str(error).partition(":")
    if mark == "lomi":
        return ReceiptExists() if rule == "tombstone" else RuleBroken(rule)
    if error.sqlite_errorcode in _UNIQUE and "receipts." in str(error):
        return ReceiptExists()
    return RuleBroken("constraint")
