"""Receipts, epochs and events in SQL. Each function is one unit of work on an open connection."""

import sqlite3
from dataclasses import fields
from typing import Any

from lomi.contract.codes import EffectState, OperationState
from lomi.store.failure import UnknownOperation
from lomi.store.rows import EventRow, NewReceipt, StoredReceipt, Tombstone

_SELECT = """SELECT sequence, operation_id, session_id, client_label, retry_epoch, project_id, tool, request_key,
    fingerprint, workspace_id, resource, generation, state, effect, result, decided_by, created_s, updated_s
    FROM receipts """
_NAMES = tuple(field.name for field in fields(StoredReceipt))
_RESERVE = """INSERT INTO receipts (operation_id, session_id, client_label, tool, fingerprint, state, project_id,
    retry_epoch, request_key, workspace_id, resource, generation, decided_by, effect, created_s, updated_s)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'none', ?, ?)"""
_MOVE = """UPDATE receipts SET state = ?, effect = ?, decided_by = COALESCE(?, decided_by), updated_s = ?
    WHERE operation_id = ?"""
_SETTLE = "UPDATE receipts SET result = ?, state = ?, effect = ?, updated_s = ? WHERE operation_id = ?"
_SETTLE_BARE = "UPDATE receipts SET state = ?, effect = ?, updated_s = ? WHERE operation_id = ?"


def insert(connection: sqlite3.Connection, receipt: NewReceipt, now_s: int) -> None:
    """Reserve a receipt; the history row follows by trigger."""
    connection.execute(
        _RESERVE,
        (
            receipt.operation_id,
            receipt.session_id,
            receipt.client_label,
            receipt.tool,
            receipt.fingerprint,
            receipt.state.value,
            receipt.project_id,
            receipt.retry_epoch,
            receipt.request_key,
            receipt.workspace_id,
            receipt.resource,
            receipt.generation,
            receipt.decided_by,
            now_s,
            now_s,
        ),
    )


def insert_succeeded(connection: sqlite3.Connection, receipt: NewReceipt, result: bytes, now_s: int) -> None:
    """Reserve a running receipt and end it as succeeded; the history shows both states."""
    insert(connection, receipt, now_s)
    settle(
        connection,
        operation_id=receipt.operation_id,
        state=OperationState.SUCCEEDED,
        effect=EffectState.COMPLETE,
        result=result,
        now_s=now_s,
    )


def move(
    connection: sqlite3.Connection,
    *,
    operation_id: str,
    state: OperationState,
    effect: EffectState,
    decided_by: str | None,
    now_s: int,
) -> None:
    """Move a receipt; the triggers judge the move.

    Raises:
        UnknownOperation: nothing of that id.
    """
    moved = connection.execute(_MOVE, (state.value, effect.value, decided_by, now_s, operation_id))
    if moved.rowcount != 1:
        raise UnknownOperation


def settle(
    connection: sqlite3.Connection,
    *,
    operation_id: str,
    state: OperationState,
    effect: EffectState,
    result: bytes | None,
    now_s: int,
) -> None:
    """End a receipt with its result, in one statement.

    Raises:
        UnknownOperation: nothing of that id.
    """
    end = (state.value, effect.value, now_s, operation_id)
    moved = connection.execute(_SETTLE_BARE, end) if result is None else connection.execute(_SETTLE, (result, *end))
    if moved.rowcount != 1:
        raise UnknownOperation


def one(connection: sqlite3.Connection, operation_id: str) -> StoredReceipt | None:
    """Return one receipt."""
    query = _SELECT + "WHERE operation_id = ?"
    row = connection.execute(query, (operation_id,)).fetchone()
    return None if row is None else _receipt(row)


def by_key(
    connection: sqlite3.Connection, *, session_id: str, epoch: str, project_id: str | None, tool: str, key: str
) -> StoredReceipt | None:
    """Return the receipt of a retry identity; without a project, the only one of any project, closed ones too."""
    query = (
        _SELECT
        + """WHERE retry_epoch = ?1 AND request_key = ?2 AND tool = ?3 AND (?4 IS NULL OR project_id = ?4)
        AND session_id = ?5 LIMIT 2"""
    )
    rows = connection.execute(query, (epoch, key, tool, project_id, session_id)).fetchall()
    return _receipt(rows[0]) if len(rows) == 1 else None


def newest(
    connection: sqlite3.Connection, session_id: str | None, since_s: int | None, before: int | None, limit: int
) -> list[StoredReceipt]:
    """Return receipts, newest first; `before` is the sequence of the last one already seen."""
    query = (
        _SELECT
        + """WHERE (?1 IS NULL OR session_id = ?1) AND (?2 IS NULL OR created_s >= ?2) AND (?3 IS NULL OR sequence < ?3)
        ORDER BY sequence DESC LIMIT ?4"""
    )
    return [_receipt(row) for row in connection.execute(query, (session_id, since_s, before, limit))]


def events(
    connection: sqlite3.Connection, session_id: str, workspace_id: str, after: int, limit: int
) -> list[EventRow]:
    """Return the states reached after place `after` of a view, in order."""
    query = """SELECT place, operation_id, workspace_id, tool, state, effect, at_s FROM history
        WHERE session_id = ? AND workspace_id = ? AND place > ? ORDER BY place LIMIT ?"""
    return [
        EventRow(
            place=place,
            operation_id=operation_id,
            workspace_id=workspace,
            tool=tool,
            state=OperationState(state),
            effect=EffectState(effect),
            at_s=at_s,
        )
        for place, operation_id, workspace, tool, state, effect, at_s in connection.execute(
            query, (session_id, workspace_id, after, limit)
        )
    ]


def tombstone(connection: sqlite3.Connection, epoch: str, project_id: str, tool: str, key: str) -> Tombstone | None:
    """Return what reconciliation left of a retry identity."""
    query = """SELECT operation_id, fingerprint, state, effect, settled_s FROM tombstones
        WHERE retry_epoch = ? AND request_key = ? AND tool = ? AND project_id = ?"""
    row = connection.execute(query, (epoch, key, tool, project_id)).fetchone()
    if row is None:
        return None
    operation_id, fingerprint, state, effect, settled_s = row
    return Tombstone(
        operation_id=operation_id,
        fingerprint=fingerprint,
        state=OperationState(state),
        effect=EffectState(effect),
        settled_s=settled_s,
    )


def _receipt(row: tuple[Any, ...]) -> StoredReceipt:
    values = dict(zip(_NAMES, row, strict=True))
    values["state"] = OperationState(values["state"])
    values["effect"] = EffectState(values["effect"])
    return StoredReceipt(**values)
