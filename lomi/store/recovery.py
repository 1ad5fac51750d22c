"""What an opening does before anything else: unfinished work of an earlier broker is told the truth about."""

import sqlite3
from dataclasses import dataclass

import msgspec

from lomi.contract.codes import EffectState, ErrorCode, OperationState
from lomi.contract.model import Failure
from lomi.core.operations import recovered
from lomi.store import artifact_rows
from lomi.store.quota import Holding
from lomi.store.receipts import move, settle

_UNKNOWN = msgspec.json.encode(Failure(code=ErrorCode.OUTCOME_UNKNOWN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the opening transaction learned: the unfinished, the layout, and how much is stored."""

    cancelled: tuple[str, ...]
    unknown: tuple[str, ...]
    layout: tuple[int, bytes] | None
    counters: dict[str, int]
    receipts: int
    epochs: int
    artifacts: list[Holding]
    artifacts_removed: int
    artifacts_expired: int


def recover(connection: sqlite3.Connection, instance_id: str, now_s: int) -> Opening:
    """Settle what an earlier broker left unfinished and make `instance_id` the present one. Nothing is replayed."""
    connection.execute(
        "INSERT INTO instance VALUES (1, ?1, ?2) ON CONFLICT DO UPDATE SET instance_id = ?1, started_s = ?2",
        (instance_id, now_s),
    )
    query = """SELECT operation_id, state, result IS NULL FROM receipts
        WHERE state IN ('queued','awaiting_user','running','cancelling')"""
    cancelled: list[str] = []
    unknown: list[str] = []
    for operation_id, stored, bare in connection.execute(query).fetchall():
        end = recovered(OperationState(stored))
        assert end is not None
        state, effect = end
        if effect is EffectState.NONE:
            move(connection, operation_id=operation_id, state=state, effect=effect, decided_by=None, now_s=now_s)
            cancelled.append(operation_id)
        else:
            result = _UNKNOWN if bare else None
            settle(connection, operation_id=operation_id, state=state, effect=effect, result=result, now_s=now_s)
            unknown.append(operation_id)
    artifacts_removed, artifacts_expired, artifacts = artifact_rows.recover(connection, now_s)
    return Opening(
        cancelled=tuple(cancelled),
        unknown=tuple(unknown),
        layout=connection.execute("SELECT revision, body FROM layout").fetchone(),
        counters=dict(connection.execute("SELECT name, value FROM counters")),
        receipts=_count(connection, "receipts"),
        epochs=_count(connection, "epochs"),
        artifacts=artifacts,
        artifacts_removed=artifacts_removed,
        artifacts_expired=artifacts_expired,
    )


def _count(connection: sqlite3.Connection, table: str) -> int:
    ((count,),) = connection.execute(f"SELECT count(*) FROM {table}")  # noqa: S608  one of two names of ours
    return int(count)
