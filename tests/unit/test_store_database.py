"""The opener that every durable database of ours uses: migrations, several databases side by side, the log's bound."""

import asyncio
import sqlite3
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from store_values import receipt, store_at

from lomi.core.failpoints import Failpoints
from lomi.store import StoreRefused, StoreUnavailable
from lomi.store.database import Database, Shape, open_database
from lomi.store.place import private_place

NOTES = Shape(
    name="notes.sqlite3",
    application=0x6E6F7465,
    migrations=(("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",),),
    store_bytes=1 << 20,
    wal_bytes=1 << 20,
)
GROWN = replace(NOTES, migrations=(*NOTES.migrations, ("ALTER TABLE notes ADD COLUMN author TEXT",)))
BROKEN = replace(GROWN, migrations=(*GROWN.migrations, ("CREATE TABLE more (x)", "CREATE TABLE more (x)")))


def rows(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT * FROM notes ORDER BY id").fetchall()


def add(text: str, connection: sqlite3.Connection) -> int | None:
    return connection.execute("INSERT INTO notes (text) VALUES (?)", (text,)).lastrowid


def opened(directory: Path, shape: Shape = NOTES):
    """One of the test's databases; its `prepared` are the rows found at the opening."""
    return open_database(private_place(directory), shape, failpoints=Failpoints({}), prepare=rows)


async def note(database: Database[list[tuple[object, ...]]], text: str) -> int | None:
    """Store a note; returns its id."""
    return await database.write(lambda connection: add(text, connection))


async def test_migrations_run_in_order_and_keep_what_is_there(tmp_path: Path) -> None:
    """An older database is brought up step by step; afterwards the older program refuses it as newer."""
    async with opened(tmp_path) as database:
        assert await note(database, "one") == 1
    async with opened(tmp_path, GROWN) as database:
        assert database.prepared == [(1, "one", None)]
    with pytest.raises(StoreRefused, match="newer"):
        async with opened(tmp_path):
            raise AssertionError


async def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    """A step is one transaction: its first statement is undone with its second, and the version stays."""
    async with opened(tmp_path, GROWN) as database:
        await note(database, "one")
    with pytest.raises(StoreUnavailable):
        async with opened(tmp_path, BROKEN):
            raise AssertionError
    async with opened(tmp_path, GROWN) as database:
        assert database.prepared == [(1, "one", None)]
        names = await database.read(lambda connection: connection.execute("SELECT name FROM sqlite_schema").fetchall())
        assert ("more",) not in names


async def test_databases_live_side_by_side_with_histories_of_their_own(tmp_path: Path) -> None:
    """Two databases in one directory have their own witness and namespace, and neither is taken for the other."""
    other = replace(NOTES, name="other.sqlite3")
    async with opened(tmp_path) as first, opened(tmp_path, other) as second:
        await asyncio.gather(note(first, "a"), note(second, "b"))
        assert first.namespace != second.namespace
        assert await first.read(rows) == [(1, "a")]
    (tmp_path / "other.sqlite3").replace(tmp_path / "notes.sqlite3")
    with pytest.raises(StoreRefused, match="rolled_back"):
        async with opened(tmp_path):
            raise AssertionError


async def test_work_of_several_statements_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    """When the second statement of a unit of work fails, the first leaves nothing, and neighbours are stored."""

    def twice(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO notes VALUES (7, 'seven')")
        connection.execute("INSERT INTO notes VALUES (7, 'again')")

    async with opened(tmp_path) as database:
        before, failed, after = note(database, "one"), database.write(twice), note(database, "two")
        outcomes = await asyncio.gather(before, failed, after, return_exceptions=True)
        assert isinstance(outcomes[1], Exception)
        assert [text for _, text in await database.read(rows)] == ["one", "two"]


async def test_who_is_told_and_raises_costs_nobody_else_an_answer(tmp_path: Path) -> None:
    """Each write of its commit has its end, its own too, and so have those after it; the loop hears what it raised."""

    def raising(_failure: Exception | None) -> None:
        raise LookupError("a fault of whoever is told")

    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: heard.append(context.get("exception")))
    async with opened(tmp_path) as database, asyncio.timeout(20):
        # The first begins a commit; the others wait for it, and are in one.
        first = database.write(partial(add, "one"))
        told = [database.write(partial(add, text), told=raising) for text in ("two", "three")]
        outcomes = await asyncio.gather(first, *told, database.write(partial(add, "four")))
        assert outcomes == [1, 2, 3, 4]
        assert await note(database, "five") == 5
    assert [type(one) for one in heard] == [LookupError]


async def test_the_reader_cannot_write(tmp_path: Path) -> None:
    """A read that tries to write is refused by SQLite itself."""
    async with opened(tmp_path) as database:
        with pytest.raises(StoreUnavailable):
            await database.read(lambda connection: add("x", connection))
        assert await database.read(rows) == []


async def test_a_log_near_its_bound_is_cut(tmp_path: Path) -> None:
    """With a small bound the log is emptied long before the next opening would refuse it."""
    async with store_at(tmp_path, wal_bytes=256 * 1024, epoch=False) as store:
        for number in range(257):
            await store.reserve(receipt(number, retry_epoch=None))
        assert (tmp_path / "agent-control" / "control.sqlite3-wal").stat().st_size < 128 * 1024
