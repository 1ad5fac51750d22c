"""What the store takes in and gives back: frozen values, one per kind of row."""

from dataclasses import dataclass

from lomi.contract.codes import EffectState, OperationState


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReceipt:
    """A receipt about to be reserved: `state` is queued, awaiting_user, or running (reserve and start in one commit).

    `operation_id` is 40 hex, `fingerprint` 32 bytes. `retry_epoch` and `request_key` are None for tools whose retry
    identity lives in memory: nothing durable keeps a duplicate away. `project_id` is "" where the tool has no project.
    """

    operation_id: str
    session_id: str
    client_label: str
    tool: str
    fingerprint: bytes
    state: OperationState
    project_id: str = ""
    retry_epoch: str | None = None
    request_key: str | None = None
    workspace_id: str | None = None
    resource: str | None = None
    generation: str | None = None
    decided_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReceipt:
    """A receipt as it stands. `sequence` is the order of reservation, times are seconds since the epoch."""

    sequence: int
    operation_id: str
    session_id: str
    client_label: str
    retry_epoch: str | None
    project_id: str
    tool: str
    request_key: str | None
    fingerprint: bytes
    workspace_id: str | None
    resource: str | None
    generation: str | None
    state: OperationState
    effect: EffectState
    result: bytes | None
    decided_by: str | None
    created_s: int
    updated_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One state that a receipt reached.

    `place` counts from 1 in the view of one session and one workspace. It has no gaps until reconciliation removes old
    rows, and is never given twice.
    """

    place: int
    operation_id: str
    workspace_id: str
    tool: str
    state: OperationState
    effect: EffectState
    at_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """What reconciliation leaves of a settled receipt: enough to refuse a late duplicate, and to say how it ended."""

    operation_id: str
    fingerprint: bytes
    state: OperationState
    effect: EffectState
    settled_s: int


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a bound is used."""

    name: str
    used: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """What the opening found unfinished. `cancelled` were never dispatched; of `unknown` nobody knows the outcome."""

    cancelled: tuple[str, ...]
    unknown: tuple[str, ...]
    artifacts_removed: int
    artifacts_expired: int
    files_removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileReport:
    """What reconciliation did: receipts turned into tombstones, receipts without a key removed, old epochs removed."""

    tombstones: int
    removed: int
    epochs: int
