"""Opening, owning and closing: layout, counters, runtimes, cancellation, and who may own a home."""

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from store_values import NOW_S, StillClock, descriptors, operation, receipt, store_at

from lomi.contract.codes import EffectState, OperationState
from lomi.store import ReceiptExists, RuleBroken, StoreLocked, StoreUnavailable
from lomi.store.counters import Counters
from lomi.store.store import DATABASE
from lomi.store.writer import Told, Work

S = OperationState


async def test_everything_survives_an_orderly_restart(tmp_path: Path) -> None:
    """Layout, runtime identities, counters and the namespace come back as they were."""
    async with store_at(tmp_path) as store:
        assert store.layout() is None
        await store.put_layout(1, b"one")
        await store.put_layout(4, b"four")
        await store.remember("android", "phone-1", "g1", b"pid 5")
        await store.remember("android", "phone-2", "g2", b"pid 6")
        await store.remember("terminal", "p9", "s3", b"pid 7")
        await store.forget("g2")
        assert [await store.bump("w") for _ in range(3)] == [1, 2, 3]
        namespace = store.namespace_uuid
    async with store_at(tmp_path, instance="i2") as store:
        assert store.layout() == (4, b"four")
        assert store.namespace_uuid == namespace
        (phone,) = await store.remembered("android")
        assert (phone.kind, phone.name, phone.generation, phone.identity) == ("android", "phone-1", "g1", b"pid 5")
        assert await store.bump("w") == 4


async def test_the_layout_never_goes_back(tmp_path: Path) -> None:
    """An equal or smaller revision is refused and the stored layout stays."""
    async with store_at(tmp_path) as store:
        await store.put_layout(5, b"five")
        for revision in (5, 4):
            with pytest.raises(RuleBroken, match="revision"):
                await store.put_layout(revision, b"other")
    async with store_at(tmp_path, instance="i2") as store:
        assert store.layout() == (5, b"five")


async def test_counters_grow_strictly_and_cost_few_commits(tmp_path: Path) -> None:
    """A thousand concurrent bumps of one counter give a thousand numbers in order, in a few dozen commits."""
    async with store_at(tmp_path) as store:
        before = store.commits
        numbers = await asyncio.gather(*(store.bump("p") for _ in range(1000)))
        assert sorted(numbers) == list(range(1, 1001))
        assert store.commits - before < 60
        assert await store.bump("p", 500) == 1500
        assert await store.bump("s") == 1


async def test_a_write_outlives_the_one_who_waits_for_it(tmp_path: Path) -> None:
    """Cancelling the waiter neither takes the row back nor disturbs the store."""
    async with store_at(tmp_path) as store:
        waiting = asyncio.ensure_future(store.reserve(receipt(1)))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await store.reserve(receipt(2))
        assert await store.receipt(operation(1)) is not None


async def test_what_is_queued_is_committed_even_when_the_owner_is_cancelled(tmp_path: Path) -> None:
    """The store's closing drains the queue through the cancellation of the task that holds it."""
    futures = []
    entered = asyncio.Event()

    async def hold() -> None:
        async with store_at(tmp_path) as store:
            futures.extend(store.reserve(receipt(number)) for number in range(600))
            entered.set()
            await asyncio.get_running_loop().create_future()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(hold())
        await entered.wait()
        task.cancel()
    assert task.cancelled()
    assert all(future.result() is None for future in futures)
    async with store_at(tmp_path, instance="i2") as store:
        assert len(store.recovered.unknown) == 600


async def test_an_exception_of_the_body_leaves_as_itself(tmp_path: Path) -> None:
    """Whoever uses the store sees its own exception, not a group around it, and its cause is kept."""
    cause = KeyError("cause")
    with pytest.raises(ZeroDivisionError) as raised:
        async with store_at(tmp_path):
            raise ZeroDivisionError from cause
    assert raised.value.__cause__ is cause


async def test_a_closed_store_takes_nothing(tmp_path: Path) -> None:
    """A write after closing fails through its future, and a failure that nobody fetches is silent."""
    async with store_at(tmp_path) as store:
        pass
    with pytest.raises(StoreUnavailable):
        await store.reserve(receipt(1))
    store.put_layout(1, b"")


async def test_a_home_has_one_owner_also_inside_a_process(tmp_path: Path) -> None:
    """A second opening is refused and says who owns the home; after the first ends it succeeds."""
    async with store_at(tmp_path, instance="first"):
        with pytest.raises(StoreLocked) as locked:
            async with store_at(tmp_path, instance="second"):
                raise AssertionError
        assert locked.value.owner is not None
        assert (locked.value.owner.pid, locked.value.owner.instance_id) == (os.getpid(), "first")
        assert locked.value.owner.started > 0
    async with store_at(tmp_path, instance="third"):
        pass


async def test_files_are_private_and_descriptors_are_given_back(tmp_path: Path) -> None:
    """Directories are 0700 and files 0600 whatever the umask; closing leaves nothing open and no log behind."""
    before = descriptors()
    old = os.umask(0)
    try:
        async with store_at(tmp_path / "home") as store:
            await store.reserve(receipt(1))
            for path in (tmp_path / "home").rglob("*"):
                assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
            assert (tmp_path / "home" / "agent-control" / "control.sqlite3-wal").exists()
    finally:
        os.umask(old)
    assert descriptors() == before
    assert not (tmp_path / "home" / "agent-control" / "control.sqlite3-wal").exists()


async def test_reconciliation_leaves_tombstones_that_still_refuse(tmp_path: Path) -> None:
    """Settled receipts past a day become tombstones; a late duplicate is refused; unfinished and fresh ones stay."""
    clock = StillClock()
    async with store_at(tmp_path, clock=clock) as store:
        await store.put_epoch("f" * 40, "s1", NOW_S + 500_000)
        late = {"retry_epoch": "f" * 40}
        for number in (1, 2, 3):
            await store.reserve(receipt(number, **late))
        await store.reserve(receipt(4, request_key=None))
        await store.settle(operation(1), S.SUCCEEDED, EffectState.COMPLETE, b"{}")
        await store.settle(operation(4), S.SUCCEEDED, EffectState.COMPLETE, b"{}")
        clock.now_s += 86_401
        await store.settle(operation(2), S.FAILED, EffectState.NONE, b"{}")
        report = await store.reconcile(ended_sessions=False, now_s=int(clock.now_s))
        assert (report.tombstones, report.removed, report.epochs) == (1, 1, 1)
        assert {row.operation_id for row in await store.receipts()} == {operation(2), operation(3)}
        grave = await store.tombstone(epoch="f" * 40, project_id="p1", tool="lomi_browser_click", key="key-1")
        assert grave is not None
        assert (grave.operation_id, grave.state, grave.effect) == (operation(1), S.SUCCEEDED, EffectState.COMPLETE)
        assert grave.fingerprint == receipt(1).fingerprint
        with pytest.raises(ReceiptExists):
            await store.reserve(receipt(9, request_key="key-1", **late))
        with pytest.raises(ReceiptExists):
            await store.reserve(receipt(9, S.QUEUED, request_key="key-1", **late))


async def test_reconciliation_of_ended_sessions_spares_the_living(tmp_path: Path) -> None:
    """With ended sessions, the settled receipts of all but the live ones go, whatever their age."""
    async with store_at(tmp_path) as store:
        for number, session in enumerate(("s1", "s2", "s3")):
            await store.reserve(receipt(number, S.QUEUED, session_id=session))
            await store.move(operation(number), S.CANCELLED)
        report = await store.reconcile(ended_sessions=True, now_s=NOW_S, live_sessions=frozenset({"s2"}))
        assert (report.tombstones, report.epochs) == (2, 1)
        assert [row.session_id for row in await store.receipts()] == ["s2"]
        assert {row.name: row.used for row in store.usage()}["receipts"] == 1


async def test_places_of_a_view_are_never_given_twice(tmp_path: Path) -> None:
    """A cursor that was read before reconciliation goes on behind it."""
    async with store_at(tmp_path) as store:
        for number in range(3):
            await store.reserve(receipt(number, S.QUEUED))
            await store.move(operation(number), S.CANCELLED)
        await store.reconcile(ended_sessions=True, now_s=NOW_S)
        assert await store.receipts() == []
        await store.reserve(receipt(9, S.QUEUED))
        events = await store.events(session_id="s1", workspace_id="w1", after=6, limit=10)
        assert [(event.place, event.operation_id) for event in events] == [(7, operation(9))]


async def test_reconciliation_makes_room_in_chunks(tmp_path: Path) -> None:
    """A full store of more than one chunk is emptied and takes receipts again."""
    async with store_at(tmp_path, receipts=1200) as store:
        for number in range(1200):
            store.reserve(receipt(number, S.QUEUED))
            last = store.move(operation(number), S.CANCELLED)
        await last
        report = await store.reconcile(ended_sessions=True, now_s=NOW_S)
        assert report.tombstones == 1200
        await store.reserve(receipt(5000, S.QUEUED))


async def test_a_commit_begins_with_the_write_itself(tmp_path: Path) -> None:
    """A row that was queued becomes durable while the loop does something else: it needs no further round of it."""
    async with store_at(tmp_path) as store:
        kept = store.reserve(receipt(1))
        assert _held_until_stored(store.directory / DATABASE)
        assert not kept.done()
        await kept


async def test_who_comes_between_a_commit_and_its_callbacks_gets_a_number() -> None:
    """A bump in the very step in which the block became durable takes from it; it does not wait for what is over."""
    written: list[tuple[asyncio.Future[None], Told]] = []

    def put(_work: Work[None], *, told: Told | None = None) -> "asyncio.Future[None]":
        assert told is not None
        written.append((asyncio.get_running_loop().create_future(), told))
        return written[-1][0]

    counters = Counters({}, put)
    first = asyncio.ensure_future(counters.bump("p"))
    await asyncio.sleep(0)
    future, told = written[0]
    told(None)
    future.set_result(None)
    assert await counters.bump("p") == 1
    assert await first == 2


def _held_until_stored(database: Path) -> bool:
    """Hold the loop until another connection sees a receipt, at most 10 s."""
    ends = time.monotonic() + 10
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as beside:
        while beside.execute("SELECT COUNT(*) FROM receipts").fetchone() != (1,) and time.monotonic() < ends:
            time.sleep(0.001)
        return bool(beside.execute("SELECT COUNT(*) FROM receipts").fetchone() == (1,))
