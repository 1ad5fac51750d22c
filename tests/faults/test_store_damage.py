"""Damaged, rolled-back, newer and foreign storage: kept as it is and refused, never opened as an emptier history."""

import asyncio
import contextlib
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import struct
import sys
from pathlib import Path

import pytest
import store_child

from lomi.store import StoreRefused
from lomi.store.wal import examine

NAMES = ("control.sqlite3", "control.sqlite3-wal", "control.witness")


async def killed_life(home: Path, kill_at: str) -> int:
    """A child writes until it is killed; returns how many receipts it was told are stored. Its log stays unmerged."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        store_child.__file__,
        "write",
        str(home),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "LOMI_FAILPOINT": kill_at},
    )
    told, _ = await process.communicate()
    assert process.returncode == -signal.SIGKILL
    return sum(line.startswith(b"reserved") for line in told.splitlines())


async def orderly_life(home: Path, first: int = 1, receipts: int = 10) -> int:
    """A life of a home in this process that ends in order; returns how many receipts the home then holds."""
    async with store_child.open_store(home, f"life-{first}") as store:
        epoch = f"{first:040d}"
        await store.put_epoch(epoch, "s1", 1 << 40)
        for number in range(first, first + receipts):
            await store.reserve(store_child.receipt(number, epoch))
        return len(await store.receipts(limit=100_000))


def content(home: Path) -> dict[str, bytes]:
    """The bytes of what holds the history."""
    place = home / "agent-control"
    return {name: (place / name).read_bytes() for name in NAMES if (place / name).exists()}


async def refusal(home: Path) -> StoreRefused:
    """Try to open a home, expect a refusal that changed nothing, return it."""
    before = content(home)
    with pytest.raises(StoreRefused) as refused:
        async with store_child.open_store(home, "after"):
            raise AssertionError
    assert content(home) == before
    assert refused.value.hint
    return refused.value


async def count(home: Path) -> int:
    """How many receipts an opening finds."""
    async with store_child.open_store(home, "after") as store:
        return len(await store.receipts(limit=100_000))


@pytest.fixture
async def killed(tmp_path: Path) -> tuple[Path, int]:
    """A home whose owner was killed with everything still in its log, and how many receipts were acknowledged."""
    home = tmp_path / "killed"
    told = await killed_life(home, "before_commit:61")
    assert (home / "agent-control" / "control.sqlite3-wal").stat().st_size > 100_000
    return home, told


async def test_flipped_bits_in_the_log_never_cost_an_acknowledged_receipt_in_silence(
    tmp_path: Path, killed: tuple[Path, int]
) -> None:
    """One flipped bit anywhere in the log: the store opens with all that was acknowledged, or refuses untouched."""
    home, told = killed
    chance = random.Random(7)
    size = (home / "agent-control" / "control.sqlite3-wal").stat().st_size
    # The header, the first frame's header and the last frame are always among them.
    offsets = [3, 9, 17, 25, 33, 37, 41, 49, size - 1, size - 4100, *(chance.randrange(size) for _ in range(14))]
    refused = 0
    for number, offset in enumerate(offsets):
        copy = tmp_path / str(number)
        shutil.copytree(home, copy)
        with (copy / "agent-control" / "control.sqlite3-wal").open("r+b") as log:
            log.seek(offset)
            (byte,) = log.read(1)
            log.seek(offset)
            log.write(bytes([byte ^ (1 << chance.randrange(8))]))
        before = content(copy)
        try:
            found, reason = await count(copy), None
        except StoreRefused as error:
            found, reason = 0, error.reason
        if reason is None:
            assert found >= told, f"offset {offset}"
        else:
            assert reason in {"wal_damaged", "rolled_back", "damaged"}, f"offset {offset}"
            assert content(copy) == before
            refused += 1
        shutil.rmtree(copy)
    assert refused == len(offsets)


async def test_an_intact_and_a_torn_log_open_with_all_that_was_acknowledged(
    tmp_path: Path, killed: tuple[Path, int]
) -> None:
    """The log as the crash left it opens; so it does with the beginning of one more frame behind it."""
    home, told = killed
    torn = tmp_path / "torn"
    shutil.copytree(home, torn)
    with (torn / "agent-control" / "control.sqlite3-wal").open("ab") as log:
        log.write(os.urandom(2000))
    assert await count(torn) >= told
    assert await count(home) >= told


async def test_a_log_cut_short_of_an_acknowledged_commit_is_refused(killed: tuple[Path, int]) -> None:
    """Losing the last commit looks healthy to SQLite; the witness knows better."""
    home, _ = killed
    log = home / "agent-control" / "control.sqlite3-wal"
    os.truncate(log, log.stat().st_size - 2000)
    assert (await refusal(home)).reason == "rolled_back"


@pytest.mark.parametrize("name", ["control.sqlite3-wal", "control.sqlite3"])
async def test_a_lost_log_or_database_is_refused(killed: tuple[Path, int], name: str) -> None:
    """A file that holds acknowledged receipts and is gone is noticed."""
    home, _ = killed
    (home / "agent-control" / name).unlink()
    assert (await refusal(home)).reason == "rolled_back"


async def test_garbage_in_place_of_the_log_is_refused(killed: tuple[Path, int]) -> None:
    """A log of random bytes is not taken for an empty one."""
    home, _ = killed
    log = home / "agent-control" / "control.sqlite3-wal"
    log.write_bytes(os.urandom(log.stat().st_size))
    assert (await refusal(home)).reason == "wal_damaged"


async def test_an_overlong_log_is_refused_unread(killed: tuple[Path, int]) -> None:
    """A log over its bound of 128 MiB (here a sparse file) is not read at all."""
    home, _ = killed
    os.truncate(home / "agent-control" / "control.sqlite3-wal", (128 << 20) + 1)
    with pytest.raises(StoreRefused, match="wal_too_large"):
        async with store_child.open_store(home):
            raise AssertionError


async def test_an_older_copy_of_the_whole_database_is_refused(tmp_path: Path) -> None:
    """A database put back from an orderly copy, without its later receipts, is refused; the right one opens."""
    home, old = tmp_path / "home", tmp_path / "old"
    await orderly_life(home)
    shutil.copytree(home, old)
    stored = await orderly_life(home, first=1000)
    shutil.copy(orderly(home), tmp_path / "control.sqlite3")
    shutil.copy(orderly(old), orderly(home))
    assert (await refusal(home)).reason == "rolled_back"
    shutil.copy(tmp_path / "control.sqlite3", orderly(home))
    assert await count(home) == stored


async def test_another_homes_database_is_refused(tmp_path: Path) -> None:
    """A database with more commits, but of another home, is not this home's history."""
    home, other = tmp_path / "home", tmp_path / "other"
    await orderly_life(home)
    await orderly_life(other, receipts=40)
    shutil.copy(other / "agent-control" / "control.sqlite3", home / "agent-control" / "control.sqlite3")
    assert (await refusal(home)).reason == "rolled_back"


def orderly(home: Path) -> Path:
    """The database of a home; whole by itself after an orderly end."""
    return home / "agent-control" / "control.sqlite3"


def damage_header(database: Path) -> None:
    with database.open("r+b") as file:
        file.write(b"garbage garbage!")


def damage_pages(database: Path) -> None:
    with database.open("r+b") as file:
        for page in range(2, database.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 600)


def empty(database: Path) -> None:
    os.truncate(database, 0)


def halve(database: Path) -> None:
    os.truncate(database, database.stat().st_size // 2)


def make_newer(database: Path) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 99")


def make_foreign(database: Path) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA application_id = 7")


def forget_witness(database: Path) -> None:
    database.with_suffix(".witness").unlink()


def damage_witness(database: Path) -> None:
    database.with_suffix(".witness").write_bytes(b"LOMIWIT1" + bytes(56))


def open_to_others(database: Path) -> None:
    database.chmod(0o640)


def link_hard(database: Path) -> None:
    os.link(database, database.with_name("second"))


def link_symbolically(database: Path) -> None:
    database.rename(database.with_name("elsewhere"))
    database.symlink_to("elsewhere")


def replace_by_pipe(database: Path) -> None:
    log = database.with_name("control.sqlite3-wal")
    os.mkfifo(log, 0o600)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (damage_header, "damaged"),
        (damage_pages, "damaged"),
        (halve, "damaged"),
        (empty, "rolled_back"),
        (make_newer, "newer"),
        (make_foreign, "foreign"),
        (forget_witness, "witness_missing"),
        (damage_witness, "witness_damaged"),
        (open_to_others, "not_private"),
        (link_hard, "not_private"),
        (link_symbolically, "not_private"),
    ],
)
async def test_changed_storage_is_refused_with_its_reason(tmp_path: Path, change: object, reason: str) -> None:
    """Each kind of damage or strangeness has its reason and a hint, and everything stays as it was."""
    assert callable(change)
    await orderly_life(tmp_path)
    change(orderly(tmp_path))
    assert (await refusal(tmp_path)).reason == reason


async def test_a_pipe_in_place_of_the_log_is_refused_without_hanging(tmp_path: Path) -> None:
    """What is not a regular file is not opened, and nothing waits for a writer."""
    await orderly_life(tmp_path)
    replace_by_pipe(orderly(tmp_path))
    with pytest.raises(StoreRefused, match="not_private"):
        async with store_child.open_store(tmp_path):
            raise AssertionError


async def test_a_creation_cut_short_is_begun_again(tmp_path: Path) -> None:
    """Before the first opening returned nothing was acknowledged: leftovers of it never block a home."""
    async with store_child.open_store(tmp_path, "first"):
        pass
    place = tmp_path / "agent-control"
    witness = (place / "control.witness").read_bytes()
    body = struct.pack(">8sQ16s", b"LOMIWIT1", 0, witness[16:32])
    (place / "control.witness").write_bytes(body + hashlib.sha256(body).digest())
    assert await count(tmp_path) == 0
    (place / "control.witness").write_bytes(body + hashlib.sha256(body).digest())
    (place / "control.sqlite3").write_bytes(b"")
    assert await count(tmp_path) == 0


async def test_a_migration_cut_short_leaves_no_half_schema(tmp_path: Path) -> None:
    """Killed at the very first commit of a new home, the next opening finds a whole, empty store."""
    await killed_life(tmp_path, "before_commit:1")
    assert await count(tmp_path) == 0


async def test_a_directory_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """A home whose directory is open to others is not used."""
    await orderly_life(tmp_path)
    (tmp_path / "agent-control").chmod(0o770)
    with pytest.raises(StoreRefused, match="not_private"):
        async with store_child.open_store(tmp_path):
            raise AssertionError


class Log:
    """A real log of ten commits, made by SQLite, to be damaged."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "copy-wal"
        database = directory / "a.sqlite3"
        with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
            connection.execute("CREATE TABLE t (x)")
            for _ in range(9):
                connection.execute("INSERT INTO t VALUES (randomblob(3000))")
            shutil.copy(f"{database}-wal", self.path)
            self.frames = (self.path.stat().st_size - 32) // 4120
            # A checkpoint and one more commit: the log begins anew and old frames stay behind the new ones.
            connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
            connection.execute("INSERT INTO t VALUES (1)")
            self.restarted = directory / "restarted-wal"
            shutil.copy(f"{database}-wal", self.restarted)

    def examined(self, path: Path | None = None) -> tuple[int, int, bool]:
        descriptor = os.open(path or self.path, os.O_RDONLY)
        try:
            return tuple(examine(descriptor))  # type: ignore[return-value]
        finally:
            os.close(descriptor)


def test_a_log_is_judged_by_its_own_checksums(tmp_path: Path) -> None:
    """Whole frames are counted; a torn tail and frames of an earlier generation are no damage; a hole is."""
    log = Log(tmp_path)
    assert log.examined() == (log.frames, log.frames, False)
    valid, committed, damaged = log.examined(log.restarted)
    assert valid == committed < log.frames
    assert not damaged
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:-100])
    assert log.examined() == (log.frames - 1, log.frames - 1, False) or not log.examined()[2]
    for offset in (5, 32 + 4120 + 8, 32 + 4120 * 3 + 2000):
        broken = bytearray(whole)
        broken[offset] ^= 1
        log.path.write_bytes(broken)
        assert log.examined()[2], offset
    log.path.write_bytes(b"")
    assert log.examined() == (0, 0, False)
