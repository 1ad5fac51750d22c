"""Artifacts in SQL. Each function is one unit of work on an open connection."""

import json
import sqlite3
from collections.abc import Sequence

from lomi.store.quota import Holding


def reserve(
    connection: sqlite3.Connection, *, holding: Holding, workspace_id: str, now_s: int, leaving: Sequence[str]
) -> None:
    """Reserve a row, and remove those that make room for it, in one."""
    delete(connection, artifact_ids=leaving)
    connection.execute(
        """INSERT INTO artifacts
            (id, class, stage, session_id, workspace_id, project_id, reserved_bytes, created_s, expires_s)
        VALUES (?, ?, 'reserved', ?, ?, ?, ?, ?, ?)""",
        (
            holding.id,
            holding.artifact_class,
            holding.session_id,
            workspace_id,
            holding.project_id,
            holding.byte_length,
            now_s,
            holding.expires_s,
        ),
    )


def make_ready(connection: sqlite3.Connection, *, artifact_id: str, byte_length: int, sha256: str, wire: bytes) -> None:
    """The bytes are durable: the row says what they are."""
    connection.execute(
        """UPDATE artifacts SET stage = 'ready', byte_length = ?, sha256 = ?, wire = ?
        WHERE id = ? AND stage = 'reserved'""",
        (byte_length, sha256, wire, artifact_id),
    )


def delete(connection: sqlite3.Connection, *, artifact_ids: Sequence[str]) -> None:
    """Remove rows; what is absent is removed already."""
    if artifact_ids:
        connection.execute(
            "DELETE FROM artifacts WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(artifact_ids)),)
        )


def wire(connection: sqlite3.Connection, *, artifact_id: str) -> bytes | None:
    """The stored wire form of a ready artifact."""
    row = connection.execute("SELECT wire FROM artifacts WHERE id = ? AND stage = 'ready'", (artifact_id,)).fetchone()
    return None if row is None else bytes(row[0])


def recover(connection: sqlite3.Connection, now_s: int) -> tuple[int, int, list[Holding]]:
    """Remove rows that were only reserved and rows that have expired; returns both counts and what remains."""
    removed = connection.execute("DELETE FROM artifacts WHERE stage = 'reserved'").rowcount
    expired = connection.execute("DELETE FROM artifacts WHERE expires_s <= ?", (now_s,)).rowcount
    rows = connection.execute(
        "SELECT id, class, session_id, project_id, byte_length, expires_s FROM artifacts ORDER BY created_s, id"
    )
    return (
        removed,
        expired,
        [
            Holding(
                id=artifact_id,
                artifact_class=artifact_class,
                session_id=session_id,
                project_id=project_id,
                byte_length=byte_length,
                expires_s=expires_s,
                reserved=False,
            )
            for artifact_id, artifact_class, session_id, project_id, byte_length, expires_s in rows
        ],
    )
