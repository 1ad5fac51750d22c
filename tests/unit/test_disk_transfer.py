"""Copying out of a root: checked bytes or a refusal, and descriptors that are free afterwards."""

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lomi.disk import transfer
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.disk.transfer import copy_verified

CONTENT = os.urandom(3_000_001)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """A source with known content and an empty sink."""
    (tmp_path / "source").write_bytes(CONTENT)
    source = os.open(tmp_path / "source", os.O_RDONLY)
    sink = os.open(tmp_path / "sink", os.O_RDWR | os.O_CREAT, 0o600)
    yield source, sink
    os.close(source)
    os.close(sink)


async def test_a_copy_is_whole_and_hashed(ends: tuple[int, int], tmp_path: Path) -> None:
    """The sink holds the same bytes, and length and hash are told; both may be demanded."""
    copied = await copy_verified(*ends, expected_length=len(CONTENT), expected_sha256=SHA256, limit=len(CONTENT))
    assert copied == (len(CONTENT), SHA256)
    assert (tmp_path / "sink").read_bytes() == CONTENT


async def test_an_empty_file_is_copied(ends: tuple[int, int], tmp_path: Path) -> None:
    """No bytes are a content too."""
    (tmp_path / "source").write_bytes(b"")
    assert await copy_verified(*ends, limit=0) == (0, hashlib.sha256().hexdigest())


@pytest.mark.parametrize(
    ("length", "sha256", "limit", "reason"),
    [
        (None, None, len(CONTENT) - 1, Reason.TOO_LARGE),
        (len(CONTENT) + 1, None, len(CONTENT), Reason.LENGTH),
        (None, "0" * 64, len(CONTENT), Reason.HASH),
    ],
)
async def test_a_wrong_expectation_is_refused(
    ends: tuple[int, int], length: int | None, sha256: str | None, limit: int, reason: Reason
) -> None:
    """Too large, another length, another hash: each with its reason."""
    with pytest.raises(DiskRefusedError) as caught:
        await copy_verified(*ends, expected_length=length, expected_sha256=sha256, limit=limit)
    assert caught.value.reason is reason


@pytest.mark.parametrize("change", ["shorten", "grow", "rewrite"])
async def test_a_change_during_the_copy_is_refused(
    ends: tuple[int, int], tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that is cut, extended or rewritten meanwhile gives no copy."""
    write_all = transfer._write_all

    def change_then_write(sink: int, piece: bytes) -> None:
        path = tmp_path / "source"
        if change == "shorten":
            os.truncate(path, 10)
        elif change == "grow":
            os.truncate(path, 4_000_000)
        else:
            with path.open("r+b") as file:
                file.write(b"rewritten")
        write_all(sink, piece)

    monkeypatch.setattr(transfer, "_write_all", change_then_write)
    with pytest.raises(DiskRefusedError) as caught:
        await copy_verified(*ends, limit=len(CONTENT))
    assert caught.value.reason is Reason.CHANGED


async def test_a_cancelled_copy_lets_go_of_its_descriptors(
    ends: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelling returns only after the thread has stopped using source and sink."""
    entered, go_on = threading.Event(), threading.Event()
    write_all = transfer._write_all

    def wait_then_write(sink: int, piece: bytes) -> None:
        entered.set()
        go_on.wait(5)
        write_all(sink, piece)

    monkeypatch.setattr(transfer, "_write_all", wait_then_write)
    async with asyncio.TaskGroup() as tasks:
        copying = tasks.create_task(copy_verified(*ends, limit=len(CONTENT)))
        await asyncio.to_thread(entered.wait, 5)
        copying.cancel()
        await asyncio.sleep(0)
        assert not copying.done(), "the thread is still writing"
        go_on.set()
        await asyncio.wait({copying})
    assert copying.cancelled()
    assert (tmp_path / "sink").stat().st_size == 1 << 20
