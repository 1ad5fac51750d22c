"""What the store of a home holds, read from outside; and a lock on it held from outside."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True)
class StoredRow:
    """One stored receipt."""

    operation_id: str
    session_id: str
    tool: str
    request_key: str | None
    state: str
    effect: str
    result: dict[str, Any] | None
    generation: str | None

    @property
    def short(self) -> str:
        """As `Answered.short`."""
        failure = self.result if self.result is not None and self.result.get("kind") == "failure" else {}
        why = f" {failure['code']}" if failure else ""
        why += f" ({failure['reason']})" if failure.get("reason") else ""
        return f"receipt {self.state}/{self.effect}{why}"


def _database(home: Path) -> Path:
    return home / "agent-control" / "control.sqlite3"


@contextlib.contextmanager
def _reading(home: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(_database(home)))}?mode=ro", uri=True)) as connection:
        yield connection


def rows_of(home: Path) -> list[StoredRow]:
    """Every stored receipt, oldest first."""
    query = """SELECT operation_id, session_id, tool, request_key, state, effect, result, generation
        FROM receipts ORDER BY sequence"""
    with _reading(home) as connection:
        return [
            StoredRow(*row[:6], json.loads(row[6]) if row[6] is not None else None, row[7])
            for row in connection.execute(query)
        ]


def counters_of(home: Path) -> dict[str, int]:
    """The durable counters."""
    with _reading(home) as connection:
        return dict(connection.execute("SELECT name, value FROM counters"))


def layout_revision(home: Path) -> int:
    """The stored domain revision."""
    with _reading(home) as connection:
        row = connection.execute("SELECT revision FROM layout").fetchone()
        return int(row[0]) if row else 0


def store_is_sound(home: Path) -> bool:
    """SQLite's own full check, and that every history is in order and ends in its receipt's state."""
    with _reading(home) as connection:
        if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            return False
        query = """SELECT r.operation_id FROM receipts r WHERE (r.state, r.effect) IS NOT
            (SELECT h.state, h.effect FROM history h WHERE h.operation_id = r.operation_id
             ORDER BY h.sequence DESC LIMIT 1)"""
        return connection.execute(query).fetchall() == []


@contextlib.contextmanager
def locked_storage(home: Path) -> Iterator[None]:
    """Hold the database's write lock, as a backup program would: the broker's commits wait."""
    with contextlib.closing(sqlite3.connect(_database(home), isolation_level=None, timeout=20)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")


def artifacts_with(home: Path, sha256: str) -> int:
    """How many ready artifacts hold these bytes."""
    with _reading(home) as connection:
        query = "SELECT count(*) FROM artifacts WHERE sha256 = ? AND stage = 'ready'"
        return int(connection.execute(query, (sha256,)).fetchone()[0])


def layout_text(home: Path) -> str:
    """The stored layout as JSON text."""
    with _reading(home) as connection:
        return str(bytes(connection.execute("SELECT body FROM layout").fetchone()[0]).decode())
