"""The store: receipts, epochs, events, layout, counters, runtime identities; durable before acknowledged."""

import asyncio
import contextlib
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from lomi.contract.codes import TERMINAL_STATES, EffectState, OperationState
from lomi.contract.definition import ResourceKind
from lomi.contract.limits import Limits
from lomi.core.failpoints import Failpoints
from lomi.core.ids import GenerationId
from lomi.core.port import Clock, Remembered
from lomi.store import receipts, retention
from lomi.store.artifacts import ArtifactStore, open_artifacts
from lomi.store.connection import PAGE
from lomi.store.counters import Counters
from lomi.store.database import Database, Shape, open_database
from lomi.store.failure import StoreFull
from lomi.store.place import owned
from lomi.store.recovery import Opening, recover
from lomi.store.rows import EventRow, NewReceipt, ReconcileReport, RecoveryReport, StoredReceipt, Tombstone, Usage
from lomi.store.schema import APPLICATION, MIGRATIONS
from lomi.store.writer import Told

T = TypeVar("T")

DATABASE = "control.sqlite3"
RESULT_BYTES = 64 * 1024
# A reserved receipt must be able to settle: its rows have their room from the start, and so has each running result.
_PAGES_PER_OPEN = 1
_PAGES_PER_RESULT = RESULT_BYTES // PAGE + 8
_PAGES_SPARE = 64


class Store:
    """The durable memory of one home, owned by one process. Use `Store.open`.

    Writes queue at once and return a future that resolves when the commit is durable; no cancellation takes one back.
    Writes are committed in the order in which they were queued.
    """

    def __init__(
        self,
        database: Database[Opening],
        artifacts: ArtifactStore,
        *,
        directory: Path,
        limits: Limits,
        clock: Clock,
        files_removed: int,
    ) -> None:
        opening = database.prepared
        self._database = database
        self._limits = limits
        self._clock = clock
        self._layout = opening.layout
        self._receipts = opening.receipts
        self._epochs = opening.epochs
        self._open: set[str] = set()
        self._counters = Counters(opening.counters, database.write)
        self.directory = directory
        self.artifacts = artifacts
        self.recovered = RecoveryReport(
            cancelled=opening.cancelled,
            unknown=opening.unknown,
            artifacts_removed=opening.artifacts_removed,
            artifacts_expired=opening.artifacts_expired,
            files_removed=files_removed,
        )

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        home: Path,
        *,
        instance_id: str,
        limits: Limits,
        clock: Clock,
        failpoints: Failpoints,
        new_namespace: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> AsyncIterator["Store"]:
        """Own `home`, verify its storage, recover it, and close it in order at the end.

        Raises:
            StoreLocked: another broker owns it.
            StoreRefused: the storage is damaged, newer, rolled back or not private; it is left as it is.
        """
        shape = Shape(
            name=DATABASE,
            application=APPLICATION,
            migrations=MIGRATIONS,
            store_bytes=limits.store_bytes,
            wal_bytes=limits.wal_bytes,
        )
        prepare = partial(recover, instance_id=instance_id, now_s=int(clock.time()))
        with owned(home, instance_id) as directory:
            opened = open_database(
                directory, shape, failpoints=failpoints, prepare=prepare, new_namespace=new_namespace
            )
            async with opened as database:
                artifacts, removed = await open_artifacts(
                    database, directory, limits=limits, clock=clock, failpoints=failpoints
                )
                store = cls(database, artifacts, directory=directory, limits=limits, clock=clock, files_removed=removed)
                try:
                    yield store
                finally:
                    store._counters.settle()

    @property
    def namespace_uuid(self) -> str:
        """A random UUID, made once with the database: device ids derive from it."""
        return str(self._database.namespace)

    @property
    def commits(self) -> int:
        """Commits since the opening; many writes share one."""
        return self._database.commits

    def reserve(self, receipt: NewReceipt) -> "asyncio.Future[None]":
        """Store a receipt before its effect.

        Raises:
            StoreFull: at once; nothing was queued.
            ReceiptExists (through the future): that retry identity, or a tombstone of it, is there.
            RuleBroken (through the future): `epoch` when its epoch is over, unknown, foreign or of another broker.
            StoreUnavailable (through the future): nothing is stored.
        """
        self._count_in(receipt)
        work = partial(receipts.insert, receipt=receipt, now_s=self._now())
        return self._database.write(work, single=True, told=partial(self._reserved, receipt.operation_id))

    def reserve_succeeded(self, receipt: NewReceipt, result: bytes) -> "asyncio.Future[None]":
        """Store a receipt, running, and its end as succeeded/complete in one commit, before its effect.

        Only for an effect that is made as soon as this is durable, and dies with the broker.

        Raises:
            As `reserve`; also RuleBroken (through the future), `too_large`, for a result over 64 KiB.
        """
        self._count_in(receipt)
        work = partial(receipts.insert_succeeded, receipt=receipt, result=result, now_s=self._now())
        return self._database.write(work, told=partial(self._reserved_succeeded, receipt.operation_id))

    def move(
        self,
        operation_id: str,
        state: OperationState,
        effect: EffectState = EffectState.NONE,
        *,
        decided_by: str | None = None,
    ) -> "asyncio.Future[None]":
        """Move a receipt; to end one with its result use `settle`.

        Raises (through the future):
            UnknownOperation, RuleBroken, StoreUnavailable.
        """
        work = partial(
            receipts.move,
            operation_id=operation_id,
            state=state,
            effect=effect,
            decided_by=decided_by,
            now_s=self._now(),
        )
        told = partial(self._settled, operation_id) if state in TERMINAL_STATES else None
        return self._database.write(work, single=True, told=told)

    def settle(
        self, operation_id: str, state: OperationState, effect: EffectState, result: bytes | None
    ) -> "asyncio.Future[None]":
        """End a receipt: result (JSON, at most 64 KiB, written once) and terminal state in one commit.

        Raises (through the future):
            UnknownOperation, RuleBroken, StoreUnavailable. After StoreUnavailable it may be tried again.
        """
        if state not in TERMINAL_STATES:
            raise ValueError(f"{state} does not end an operation")
        work = partial(
            receipts.settle, operation_id=operation_id, state=state, effect=effect, result=result, now_s=self._now()
        )
        return self._database.write(work, single=True, told=partial(self._settled, operation_id))

    def put_epoch(self, epoch: str, session_id: str, expires_s: int) -> "asyncio.Future[None]":
        """Store a retry epoch of this broker and one session.

        Raises:
            StoreFull: at once; nothing was queued.
            StoreUnavailable (through the future): nothing is stored.
        """
        if self._epochs >= self._limits.epochs:
            raise StoreFull("epochs")
        self._epochs += 1
        values = (epoch, session_id, expires_s)
        query = "INSERT INTO epochs SELECT ?1, ?2, instance_id, ?3 FROM instance"
        return self._run(query, values, told=self._epoch_stored)

    def put_layout(self, revision: int, body: bytes) -> "asyncio.Future[None]":
        """Store the layout; its revision only grows.

        Raises (through the future):
            RuleBroken: `revision`. StoreUnavailable: nothing is stored.
        """
        query = "INSERT INTO layout VALUES (1, ?1, ?2) ON CONFLICT DO UPDATE SET revision = ?1, body = ?2"
        return self._run(query, (revision, body))

    def layout(self) -> tuple[int, bytes] | None:
        """The layout as it was at the opening: revision and body."""
        return self._layout

    async def bump(self, counter: str, by: int = 1) -> int:
        """Grow a counter that never goes back and return its new value; normally without a commit.

        Raises:
            StoreUnavailable: a new block of numbers could not be made durable.
        """
        return await self._counters.bump(counter, by)

    def remember(self, kind: ResourceKind, name: str, generation: str, identity: bytes) -> "asyncio.Future[None]":
        """Store how a runtime can be recognised (at most 4 KiB), before it is used."""
        query = "INSERT OR REPLACE INTO runtimes (generation, kind, name, identity) VALUES (?, ?, ?, ?)"
        return self._run(query, (generation, kind, name, identity))

    def forget(self, generation: str) -> "asyncio.Future[None]":
        """The runtime was observed gone."""
        query = "DELETE FROM runtimes WHERE generation = ?"
        return self._run(query, (generation,))

    async def remembered(self, kind: ResourceKind) -> Sequence[Remembered]:
        """Every identity of a kind that was not forgotten, also those of earlier brokers."""
        query = "SELECT name, generation, identity FROM runtimes WHERE kind = ? ORDER BY generation"
        rows = await self._database.read(lambda connection: connection.execute(query, (kind,)).fetchall())
        return [
            Remembered(kind=kind, name=name, generation=GenerationId(generation), identity=identity)
            for name, generation, identity in rows
        ]

    async def receipt(self, operation_id: str) -> StoredReceipt | None:
        """Read one receipt."""
        return await self._database.read(partial(receipts.one, operation_id=operation_id))

    async def receipt_by_key(
        self, *, session_id: str, epoch: str, project_id: str | None, tool: str, key: str
    ) -> StoredReceipt | None:
        """Read the receipt of a retry identity; without a project, the only one of any project, closed ones too."""
        work = partial(receipts.by_key, session_id=session_id, epoch=epoch, project_id=project_id, tool=tool, key=key)
        return await self._database.read(work)

    async def receipts(
        self, *, session_id: str | None = None, since_s: int | None = None, before: int | None = None, limit: int = 100
    ) -> list[StoredReceipt]:
        """Read receipts, newest first; `before` is the sequence of the last one already seen."""
        work = partial(receipts.newest, session_id=session_id, since_s=since_s, before=before, limit=limit)
        return await self._database.read(work)

    async def events(self, *, session_id: str, workspace_id: str, after: int, limit: int) -> list[EventRow]:
        """Read the states reached after place `after` in the view of a session and a workspace, in order."""
        work = partial(receipts.events, session_id=session_id, workspace_id=workspace_id, after=after, limit=limit)
        return await self._database.read(work)

    async def tombstone(self, *, epoch: str, project_id: str, tool: str, key: str) -> Tombstone | None:
        """Read what reconciliation left of a retry identity."""
        return await self._database.read(
            partial(receipts.tombstone, epoch=epoch, project_id=project_id, tool=tool, key=key)
        )

    def usage(self) -> tuple[Usage, ...]:
        """How full the store is; from memory."""
        return (
            Usage("receipts", self._receipts, self._limits.receipts),
            Usage("epochs", self._epochs, self._limits.epochs),
            Usage("store_bytes", self._database.pages * PAGE, self._limits.store_bytes),
            *self.artifacts.usage(),
        )

    async def reconcile(
        self, *, ended_sessions: bool, now_s: int, live_sessions: frozenset[str] = frozenset()
    ) -> ReconcileReport:
        """Turn settled receipts past their retention into tombstones.

        With `ended_sessions` also those of every session that is not among the live ones.

        Raises:
            StoreUnavailable: it stopped between two chunks; what it did stays, and it may be run again.
        """
        window = retention.Window(now_s - self._limits.retention_s, live_sessions if ended_sessions else None)
        tombstones = removed = 0
        while True:
            swept = await self._database.write(partial(retention.sweep_receipts, window=window))
            if swept == (0, 0):
                break
            self._receipts -= swept.tombstones + swept.removed
            tombstones += swept.tombstones
            removed += swept.removed
        after: int | None = 0
        while after is not None:
            after = await self._database.write(partial(retention.sweep_history, after=after))
        epochs = await self._database.write(partial(retention.sweep_epochs, now_s=now_s, window=window))
        self._epochs -= epochs
        return ReconcileReport(tombstones=tombstones, removed=removed, epochs=epochs)

    def _count_in(self, receipt: NewReceipt) -> None:
        if self._receipts >= self._limits.receipts:
            raise StoreFull("receipts")
        if self._database.pages + self._pages_promised() > self._limits.store_bytes // PAGE:
            raise StoreFull("store_bytes")
        self._receipts += 1
        self._open.add(receipt.operation_id)

    def _pages_promised(self) -> int:
        unfinished = len(self._open) + 1
        results = min(unfinished, self._limits.work_items)
        return unfinished * _PAGES_PER_OPEN + results * _PAGES_PER_RESULT + _PAGES_SPARE

    def _run(
        self, query: str, values: tuple[str | int | bytes, ...], told: Told | None = None
    ) -> "asyncio.Future[None]":
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(query, values)

        return self._database.write(work, single=True, told=told)

    def _now(self) -> int:
        return int(self._clock.time())

    def _reserved(self, operation_id: str, failure: Exception | None) -> None:
        if failure is not None:
            self._receipts -= 1
            self._open.discard(operation_id)

    def _reserved_succeeded(self, operation_id: str, failure: Exception | None) -> None:
        self._reserved(operation_id, failure)
        self._settled(operation_id, failure)

    def _settled(self, operation_id: str, failure: Exception | None) -> None:
        if failure is None:
            self._open.discard(operation_id)

    def _epoch_stored(self, failure: Exception | None) -> None:
        if failure is not None:
            self._epochs -= 1
