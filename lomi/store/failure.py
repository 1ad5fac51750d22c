"""What can go wrong with the store, as closed exceptions. None of their texts holds a row's content."""

import errno
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

_FREE_ENOUGH = 64 * 1024
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class StoreError(Exception):
    """Base of everything that the store raises on purpose."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a home: process id, start time (clock ticks since boot, 0 where unknown), the broker's instance id."""

    pid: int
    started: int
    instance_id: str


class StoreLocked(StoreError):  # noqa: N818  an answer, not a fault
    """Another live broker owns this home. `owner` is None when it has not said yet who it is."""

    def __init__(self, owner: Owner | None) -> None:
        told = "another process" if owner is None else f"broker {owner.instance_id} (pid {owner.pid})"
        super().__init__(f"this home belongs to {told}")
        self.owner = owner


class StoreRefused(StoreError):  # noqa: N818
    """The storage is not opened and nothing in it was changed: damaged, newer, rolled back, or not private.

    `reason` is one of: not_private, wal_too_large, wal_damaged, damaged, foreign, newer, rolled_back, witness_missing,
    witness_damaged, unsafe_name.
    """

    def __init__(self, reason: str, path: Path, hint: str) -> None:
        super().__init__(f"{path}: {reason}: {hint}")
        self.reason = reason
        self.path = path
        self.hint = hint


class StoreUnavailable(StoreError):  # noqa: N818
    """A write was not made durable: nothing of it is stored. `reason` is disk_full or store_failed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StoreFull(StoreError):  # noqa: N818
    """A bound of the store is reached; `reason` is store_full. `limit` names the bound."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"store_full: {limit}")
        self.reason = "store_full"
        self.limit = limit


class ReceiptExists(StoreError):  # noqa: N818
    """A receipt (or the tombstone of one) with this retry identity or operation id is already stored."""


class UnknownOperation(StoreError):  # noqa: N818
    """No such operation is stored."""


class RuleBroken(StoreError):  # noqa: N818
    """The store's own triggers refused a write that the pure rules should have refused before.

    `rule` is one of: illegal_move, effect, result_written, epoch, revision, too_large.
    """

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


def failure_reason(error: sqlite3.Error | OSError, path: Path) -> str:
    """Whether a failure means that the volume of `path` is full, or something else."""
    if isinstance(error, OSError):
        return "disk_full" if error.errno in _NO_ROOM else "store_failed"
    if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_FULL:
        return "disk_full"
    try:
        volume = os.statvfs(path.parent)
    except OSError:
        return "store_failed"
    # SQLite calls some of them input/output errors.
    return "disk_full" if volume.f_bavail * volume.f_frsize < _FREE_ENOUGH else "store_failed"
