"""The durable memory: the only place with SQL."""

from lomi.store.failure import (
    Owner,
    ReceiptExists,
    RuleBroken,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreRefused,
    StoreUnavailable,
    UnknownOperation,
)
from lomi.store.rows import EventRow, NewReceipt, ReconcileReport, RecoveryReport, StoredReceipt, Tombstone, Usage
from lomi.store.store import Store

__all__ = [
    "EventRow",
    "NewReceipt",
    "Owner",
    "ReceiptExists",
    "ReconcileReport",
    "RecoveryReport",
    "RuleBroken",
    "Store",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "StoreRefused",
    "StoreUnavailable",
    "StoredReceipt",
    "Tombstone",
    "UnknownOperation",
    "Usage",
]
