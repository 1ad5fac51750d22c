"""Judging a database before it is opened for writing: what is damaged, newer or rolled back is left as it is."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from lomi.store.connection import connect_reading
from lomi.store.failure import StoreRefused
from lomi.store.place import open_private
from lomi.store.wal import examine
from lomi.store.witness import Seen

KEEP_HINT = "Nothing was changed. Restore a good copy of the whole directory, or move it away to begin a new history."


def verify(path: Path, *, application: int, version: int, wal_bytes: int, seen: Seen | None) -> bool:
    """Check a database and its log without changing them; False when there is none yet. Blocks: it reads everything.

    Args:
        path: the database; `-wal` and `-shm` beside it.
        application: the application id it must carry.
        version: the newest schema version that is understood.
        wal_bytes: the longest log that is accepted.
        seen: what its witness remembers.

    Raises:
        StoreRefused: see its reasons.
    """
    log = path.with_name(path.name + "-wal")
    empty = _length(path) == 0
    for suffix in ("-shm", "-journal"):
        _length(path.with_name(path.name + suffix))
    logged = _length(log) > 0
    if seen is None:
        if not empty:
            raise StoreRefused("witness_missing", path, KEEP_HINT)
        return False
    if seen.sequence == 0:
        # Its creation was cut short: no commit was ever acknowledged, so there is nothing to lose.
        return False
    if empty:
        raise StoreRefused("rolled_back", path, KEEP_HINT)
    if logged:
        _verify_log(log, wal_bytes)
    with _judged(path), contextlib.closing(connect_reading(path, untouched=not logged)) as connection:
        _verify_content(connection, path, application=application, version=version, seen=seen)
    return True


def _length(path: Path) -> int:
    """The length of a private file, 0 when it is absent."""
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return 0
    try:
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _verify_log(path: Path, wal_bytes: int) -> None:
    descriptor = open_private(path, os.O_RDONLY)
    try:
        if os.fstat(descriptor).st_size > wal_bytes:
            raise StoreRefused("wal_too_large", path, KEEP_HINT)
        if examine(descriptor).damaged:
            raise StoreRefused("wal_damaged", path, KEEP_HINT)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _judged(path: Path) -> Iterator[None]:
    """What SQLite can't make sense of is damaged."""
    try:
        yield
    except (sqlite3.Error, ValueError) as error:
        raise StoreRefused("damaged", path, KEEP_HINT) from error


def _verify_content(connection: sqlite3.Connection, path: Path, *, application: int, version: int, seen: Seen) -> None:
    ((found_application,),) = connection.execute("PRAGMA application_id")
    ((found_version,),) = connection.execute("PRAGMA user_version")
    if found_version > version:
        raise StoreRefused("newer", path, "A newer Lomi wrote it; use that version.")
    if found_version == 0:
        raise StoreRefused("rolled_back", path, KEEP_HINT)
    if found_application != application:
        raise StoreRefused("foreign", path, KEEP_HINT)
    ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
    if verdict != "ok":
        raise StoreRefused("damaged", path, KEEP_HINT)
    ((sequence, namespace),) = connection.execute("SELECT sequence, namespace FROM ledger")
    if namespace != seen.namespace or sequence < seen.sequence:
        raise StoreRefused("rolled_back", path, KEEP_HINT)
