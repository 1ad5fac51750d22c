"""Reconciliation: settled receipts past their time become tombstones. Deliberate; nothing here runs by itself.

Each function is one short unit of work, so that receipts of a running broker are committed between them.
"""

import json
import sqlite3
from typing import NamedTuple

_CHUNK = 500
_STRETCH = 20_000


class Swept(NamedTuple):
    """One chunk: how many receipts became tombstones, and how many left none because they had no key."""

    tombstones: int
    removed: int


class Window(NamedTuple):
    """What may go: settled before `before_s` (seconds since the epoch), or, unless None, of a session not in `live`."""

    before_s: int
    live: frozenset[str] | None

    def values(self) -> tuple[int, str | None]:
        """The values of the two parameters that the queries name."""
        return self.before_s, None if self.live is None else json.dumps(sorted(self.live))


def sweep_receipts(connection: sqlite3.Connection, window: Window) -> Swept:
    """Move one chunk of settled receipts to tombstones."""
    chosen = connection.execute(
        """SELECT sequence FROM receipts WHERE state IN ('succeeded','failed','cancelled','outcome_unknown')
        AND (updated_s < ?1 OR (?2 IS NOT NULL AND session_id NOT IN (SELECT value FROM json_each(?2)))) LIMIT ?3""",
        (*window.values(), _CHUNK),
    ).fetchall()
    listed = json.dumps([sequence for (sequence,) in chosen])
    kept = connection.execute(
        """INSERT INTO tombstones SELECT retry_epoch, request_key, tool, project_id, session_id, fingerprint,
        operation_id, state, effect, updated_s FROM receipts
        WHERE sequence IN (SELECT value FROM json_each(?)) AND request_key IS NOT NULL AND retry_epoch IS NOT NULL""",
        (listed,),
    ).rowcount
    connection.execute("DELETE FROM receipts WHERE sequence IN (SELECT value FROM json_each(?))", (listed,))
    return Swept(kept, len(chosen) - kept)


def sweep_history(connection: sqlite3.Connection, after: int) -> int | None:
    """Remove events of receipts that are gone, in one stretch of the history; returns where the next begins or None.

    The newest event of each view stays: a place is never given twice.
    """
    ((last,),) = connection.execute("SELECT COALESCE(MAX(sequence), 0) FROM history")
    connection.execute(
        """DELETE FROM history WHERE sequence > ?1 AND sequence <= ?2
        AND NOT EXISTS (SELECT 1 FROM receipts WHERE receipts.operation_id = history.operation_id)
        AND EXISTS (SELECT 1 FROM history AS later WHERE later.session_id = history.session_id
            AND later.workspace_id IS history.workspace_id AND later.place > history.place)""",
        (after, after + _STRETCH),
    )
    return after + _STRETCH if after + _STRETCH < last else None


def sweep_epochs(connection: sqlite3.Connection, now_s: int, window: Window) -> int:
    """Remove epochs that are over, and those of ended sessions; a retry in one of them is refused as unknown."""
    _, live = window.values()
    return connection.execute(
        """DELETE FROM epochs WHERE expires_s <= ?1
        OR (?2 IS NOT NULL AND session_id NOT IN (SELECT value FROM json_each(?2)))""",
        (now_s, live),
    ).rowcount
