"""Opening a durable database of ours: verified first, then one writer and one reader. Receipts and chat both use it."""

import asyncio
import contextlib
import os
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from lomi.core.failpoints import Failpoints
from lomi.store.connection import PAGE, Connection, reading, writing
from lomi.store.failure import StoreUnavailable, failure_reason
from lomi.store.place import open_private
from lomi.store.verify import verify
from lomi.store.witness import Witness
from lomi.store.writer import Told, Work, Writer

T = TypeVar("T")
P = TypeVar("P")

LEDGER = (
    """CREATE TABLE ledger (
        only INTEGER PRIMARY KEY CHECK (only = 1), sequence INTEGER NOT NULL,
        namespace BLOB NOT NULL CHECK (length(namespace) = 16)
    ) STRICT""",
)
"""Every database counts its commits and knows its namespace; the writer and the witness rely on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a database is: file name, application id, migrations (tuples of statements, in order), bounds in bytes."""

    name: str
    application: int
    migrations: tuple[tuple[str, ...], ...]
    store_bytes: int
    wal_bytes: int


class Database(Generic[P]):
    """An open database. `prepared` is what the `prepare` step of its opening returned."""

    def __init__(self, writer: Writer, reader: Connection, *, path: Path, namespace: uuid.UUID, prepared: P) -> None:
        self._path = path
        self._writer = writer
        self._reader = reader
        self.namespace = namespace
        self.prepared = prepared

    @property
    def pages(self) -> int:
        """Pages of 4 KiB in use after the last commit."""
        return self._writer.pages

    @property
    def commits(self) -> int:
        """Commits since the opening."""
        return self._writer.commits

    def write(self, work: Work[T], *, single: bool = False, told: Told | None = None) -> "asyncio.Future[T]":
        """Queue `work`, a function of the connection; see `Writer.put`."""
        return self._writer.put(work, single=single, told=told)

    async def read(self, work: Work[T]) -> T:
        """Run `work` on the read-only connection; it sees what is durable.

        Raises:
            StoreUnavailable: the disk failed.
        """
        with _failures_told(self._path):
            return await self._reader.visit(work)


@contextlib.asynccontextmanager
async def open_database(
    directory: Path,
    shape: Shape,
    *,
    failpoints: Failpoints,
    prepare: Callable[[sqlite3.Connection], P],
    new_namespace: Callable[[], uuid.UUID] = uuid.uuid4,
) -> AsyncIterator[Database[P]]:
    """Open a database in a private directory that the caller owns.

    `prepare` runs once on the writing connection, after migrations, in the immediate transaction that ends the opening.

    Raises:
        StoreRefused: it is not opened, and left as it is.
        StoreUnavailable: the disk is full or failed while opening; nothing was lost.
    """
    path = directory / shape.name
    async with contextlib.AsyncExitStack() as stack:
        with _failures_told(path):
            witness = await asyncio.to_thread(Witness, path.with_suffix(".witness"))
            stack.push_async_callback(asyncio.to_thread, witness.close)
            namespace = await asyncio.to_thread(_admit, path, shape, witness, new_namespace)
            connection = await stack.enter_async_context(writing(path, shape.store_bytes // PAGE))

            def begin(opened: sqlite3.Connection) -> tuple[int, int, P]:
                _migrate(opened, shape, namespace)
                return _prepare(opened, prepare)

            sequence, pages, prepared = await connection.visit(begin)
            await asyncio.to_thread(witness.settle, sequence, namespace.bytes)
            reader = await stack.enter_async_context(reading(path))
        writer = Writer(
            connection,
            path=path,
            witness=witness,
            sequence=sequence,
            wal_bytes=shape.wal_bytes,
            namespace=namespace.bytes,
            failpoints=failpoints,
        )
        writer.pages = pages
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(writer.run(), name=f"writer of {shape.name}")
                try:
                    yield Database(writer, reader, path=path, namespace=namespace, prepared=prepared)
                finally:
                    writer.end()
                    await _finished(task)
        except BaseExceptionGroup as group_error:
            # The body's own exception leaves as itself; that a task runs beside it is nobody's business.
            if len(group_error.exceptions) == 1:
                raise group_error.exceptions[0] from group_error.exceptions[0].__cause__
            raise


@contextlib.contextmanager
def _failures_told(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(failure_reason(error, path)) from error


async def _finished(task: "asyncio.Task[None]") -> None:
    """Wait for the writer through any number of cancellations of the one who waits: what was queued gets committed."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _admit(path: Path, shape: Shape, witness: Witness, new_namespace: Callable[[], uuid.UUID]) -> uuid.UUID:
    """Verify what is there, or begin something new; return the namespace."""
    exists = verify(
        path,
        application=shape.application,
        version=len(shape.migrations),
        wal_bytes=shape.wal_bytes,
        seen=witness.seen,
    )
    if exists and witness.seen is not None:
        return uuid.UUID(bytes=witness.seen.namespace)
    namespace = new_namespace() if witness.seen is None else uuid.UUID(bytes=witness.seen.namespace)
    witness.settle(0, namespace.bytes)
    # Created here so that it, and the log that copies its mode, are never open to others.
    os.close(open_private(path))
    return namespace


def _migrate(connection: sqlite3.Connection, shape: Shape, namespace: uuid.UUID) -> None:
    ((version,),) = connection.execute("PRAGMA user_version")
    for number in range(version, len(shape.migrations)):
        with _immediate(connection):
            if number == 0:
                for statement in LEDGER:
                    connection.execute(statement)
                connection.execute("INSERT INTO ledger VALUES (1, 0, ?)", (namespace.bytes,))
                connection.execute(f"PRAGMA application_id = {shape.application}")
            for statement in shape.migrations[number]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")


def _prepare(connection: sqlite3.Connection, prepare: Callable[[sqlite3.Connection], P]) -> tuple[int, int, P]:
    with _immediate(connection):
        prepared = prepare(connection)
        ((sequence,),) = connection.execute("UPDATE ledger SET sequence = sequence + 1 RETURNING sequence").fetchall()
        ((pages,),) = connection.execute("PRAGMA page_count")
    return sequence, pages, prepared


@contextlib.contextmanager
def _immediate(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
