"""A store without room: on a volume that is really full, and at its own bound."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import store_child

from lomi.contract.artifact import ProjectSource
from lomi.contract.codes import EffectState, ErrorCode, OperationState
from lomi.contract.limits import DESKTOP
from lomi.core.failpoints import Failpoints
from lomi.core.refusal import Refusal
from lomi.store import Store, StoreFull, StoreUnavailable

S = OperationState
EPOCH = "e" * 40


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A real volume of 32 MiB, mounted for one test."""
    path = tmp_path / "volume"
    path.mkdir()
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "tmpfs", str(path)], check=False, capture_output=True
    )
    if mounted.returncode != 0:  # only root may mount, and not in every container
        pytest.skip(f"a volume can't be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield path
    finally:
        subprocess.run(["/bin/umount", str(path)], check=True)


def fill(volume: Path, leave: int = 0) -> Path:
    """Take all room of a volume but `leave` bytes; returns the file to remove."""
    ballast = volume / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    os.truncate(ballast, max(0, ballast.stat().st_size - leave))
    return ballast


async def reserve(store: Store, number: int) -> None:
    """Reserve a receipt of this test's epoch."""
    await store.reserve(store_child.receipt(number, EPOCH))


async def test_a_full_volume_refuses_and_recovers_by_itself(volume: Path) -> None:
    """Full: every write says disk_full and nothing is stored; with room again the same store goes on, complete."""
    home = volume / "home"
    stored = []
    async with store_child.open_store(home) as store:
        await store.put_epoch(EPOCH, "s1", 1 << 40)
        await reserve(store, 0)
        ballast = fill(volume)
        refused = 0
        for number in range(1, 400):
            try:
                await reserve(store, number)
                stored.append(number)
            except StoreUnavailable as unavailable:
                assert unavailable.reason == "disk_full"  # noqa: PT017  each of many
                refused += 1
                if refused == 5:
                    break
        assert refused == 5
        with pytest.raises(StoreUnavailable):
            await store.settle(f"{0:040x}", S.SUCCEEDED, EffectState.COMPLETE, bytes(60_000))
        found = {int(row.operation_id, 16) for row in await store.receipts(limit=1000)}
        assert found == {0, *stored}
        ballast.unlink()
        await store.settle(f"{0:040x}", S.SUCCEEDED, EffectState.COMPLETE, bytes(60_000))
        await reserve(store, 1000)
    async with store_child.open_store(home, "after") as store:
        rows = {int(row.operation_id, 16): row for row in await store.receipts(limit=1000)}
        assert set(rows) == {0, *stored, 1000}
        assert rows[0].state is S.SUCCEEDED


async def test_on_a_nearly_full_volume_the_small_neighbours_of_a_big_write_are_stored(volume: Path) -> None:
    """Waiting together with a result that does not fit, small reservations are still stored, each by itself."""
    async with store_child.open_store(volume / "home") as store:
        await store.put_epoch(EPOCH, "s1", 1 << 40)
        for number in range(40):
            await reserve(store, number)
        fill(volume, leave=150_000)
        big = [store.settle(f"{number:040x}", S.SUCCEEDED, EffectState.COMPLETE, bytes(65_000)) for number in range(40)]
        small = [store.reserve(store_child.receipt(number, EPOCH)) for number in (100, 101)]
        outcomes = await asyncio.gather(*small, *big, return_exceptions=True)
        kinds = {type(outcome) for outcome in outcomes}
        assert kinds == {type(None), StoreUnavailable}
        for number, outcome in zip([100, 101, *range(40)], outcomes, strict=True):
            row = await store.receipt(f"{number:040x}")
            expected = S.RUNNING if number >= 100 else S.SUCCEEDED
            assert (row is not None and row.state is expected) == (outcome is None)


async def test_a_full_volume_takes_no_artifact_and_keeps_the_old_ones(volume: Path) -> None:
    """An import onto a full volume is refused as disk_full, leaves no file, and the old picture is intact."""
    file = volume / "file"
    content = bytes(2_000_000)
    file.write_bytes(content)
    source = ProjectSource(kind="file", workspace_id="w1", relative_path="file")
    async with store_child.open_store(volume / "home") as store:
        old = await store.artifacts.put_image(store_child.call(), store_child.png(), store_child.SOURCE, None)
        names = set((volume / "home" / "agent-control" / "artifacts").iterdir())
        ballast = fill(volume, leave=1_000_000)
        descriptor = os.open(file, os.O_RDONLY)
        try:
            digest = "0" * 64
            with pytest.raises(Refusal) as refused:
                await store.artifacts.import_file(
                    store_child.call(), descriptor, source, expected_length=len(content), expected_sha256=digest
                )
        finally:
            os.close(descriptor)
        assert (refused.value.code, refused.value.reason) == (ErrorCode.STORAGE_UNAVAILABLE, "disk_full")
        assert set((volume / "home" / "agent-control" / "artifacts").iterdir()) == names
        assert {row.name: row.used for row in store.usage()}["artifacts"] == 1
        async with store.artifacts.open(store_child.call(), old.id) as opened:
            assert await store.artifacts.content(opened) == store_child.png()
        ballast.unlink()
        await store.artifacts.put_image(store_child.call(), store_child.png(1), store_child.SOURCE, None)


async def test_a_volume_that_is_full_from_the_start_opens_when_there_is_room(volume: Path) -> None:
    """A first opening without room fails without leaving something that blocks the next."""
    ballast = fill(volume)
    with pytest.raises(StoreUnavailable, match="disk_full"):
        async with store_child.open_store(volume / "home"):
            raise AssertionError
    ballast.unlink()
    async with store_child.open_store(volume / "home") as store:
        await store.put_epoch(EPOCH, "s1", 1 << 40)


async def test_at_its_own_bound_the_store_refuses_new_receipts_but_settles_the_old(tmp_path: Path) -> None:
    """With 4 MiB, reservation stops as store_full while every receipt under way can store a result of 64 KiB."""
    limits = msgspec.structs.replace(DESKTOP, store_bytes=4 << 20, work_items=8)
    opened = Store.open(
        tmp_path, instance_id="i1", limits=limits, clock=store_child.SystemClock(), failpoints=Failpoints({})
    )
    async with opened as store:
        await store.put_epoch(EPOCH, "s1", 1 << 40)
        number = 0
        full: StoreFull | None = None
        while full is None:
            under_way = []
            try:
                for _ in range(8):
                    await reserve(store, number)
                    under_way.append(number)
                    number += 1
            except StoreFull as error:
                full = error
            for operation in under_way:
                await store.settle(f"{operation:040x}", S.SUCCEEDED, EffectState.COMPLETE, bytes(65_536))
        assert full.limit == "store_bytes"
        assert 16 <= number <= 64
        used, limit = next((row.used, row.limit) for row in store.usage() if row.name == "store_bytes")
        assert used <= limit
        assert len(await store.receipts(limit=1000)) == number
        report = await store.reconcile(ended_sessions=True, now_s=0)
        assert report.tombstones == number
        await store.put_epoch("f" * 40, "s1", 1 << 40)
        await store.reserve(store_child.receipt(9999, "f" * 40))
