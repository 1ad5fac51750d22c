"""One SQLite connection on a thread of its own, with the settings that make a commit durable."""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import quote

import aiosqlite

T = TypeVar("T")
PAGE = 4096
_BUSY_MS = 2000


class Connection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole unit of work in one visit to its thread.

    A cancelled caller can leave a transaction open that spans awaits, never one that is a single call on the thread.
    """

    async def visit(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the connection's thread; it must end every transaction that it begins."""
        result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]
        return result

    def visit_soon(self, work: Callable[[sqlite3.Connection], T], told: Callable[[T | BaseException], None]) -> None:
        """As `visit`, begun at once; `told` is called in the loop with the result, or with what `work` raised.

        It is called straight from the thread's own message: a future would cost the loop two more rounds.
        """
        loop = asyncio.get_running_loop()

        def run(connection: sqlite3.Connection) -> None:
            ended: T | BaseException
            try:
                ended = work(connection)
            except BaseException as failed:  # noqa: BLE001  passed on to the loop, as aiosqlite itself does
                ended = failed
            loop.call_soon_threadsafe(told, ended)

        self._tx.put_nowait((None, partial(run, self._conn)))

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        return self


def writing(path: Path, pages: int) -> Connection:
    """The one connection that writes and checkpoints `path`; at most `pages` pages of 4 KiB. Enter it to open it."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        for setting in (
            f"busy_timeout={_BUSY_MS}",
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "journal_mode=WAL",
            "synchronous=FULL",
            "fullfsync=ON",
            "checkpoint_fullfsync=ON",
            "foreign_keys=ON",
            "temp_store=MEMORY",
            f"max_page_count={pages}",
        ):
            connection.execute(f"PRAGMA {setting}").fetchall()
        return connection

    return Connection(connect, iter_chunk_size=64)


def reading(path: Path) -> Connection:
    """A connection that can't write; it never checkpoints, not even when it is the last to close."""
    return Connection(lambda: connect_reading(path), iter_chunk_size=64)


def connect_reading(path: Path, *, untouched: bool = False) -> sqlite3.Connection:
    """Open `path` for reading on this thread; `untouched` makes no file beside it, and reads no log."""
    mode = "mode=ro&immutable=1" if untouched else "mode=ro"
    connection = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, isolation_level=None)
    for setting in (f"busy_timeout={_BUSY_MS}", "trusted_schema=OFF", "cell_size_check=ON", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    return connection
