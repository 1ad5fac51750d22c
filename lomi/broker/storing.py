"""The store's failures as refusals, in one place."""

import asyncio
from collections.abc import Callable

from lomi.contract.codes import Details, ErrorCode
from lomi.core.refusal import Refusal
from lomi.store import ReceiptExists, RuleBroken, StoreFull, StoreUnavailable


class AlreadyStored(Exception):  # noqa: N818  an answer, not a fault
    """Raised when the store holds a receipt of this retry identity: the request was made before."""


def queued(write: "Callable[[], asyncio.Future[None]]") -> "asyncio.Future[None]":
    """Put a write into the writer's queue.

    Raises:
        Refusal: RESOURCE_EXHAUSTED (`store_full`); nothing is queued then.
    """
    try:
        return write()
    except StoreFull as full:
        raise Refusal(ErrorCode.RESOURCE_EXHAUSTED, full.reason, details=Details(state=full.limit)) from full


async def storing(saved: "asyncio.Future[None] | None") -> None:
    """Return when a write is durable. It goes on when the caller is cancelled, though `saved` itself ends then.

    Raises:
        Refusal: STORAGE_UNAVAILABLE when the disk refused it, RETRY_WINDOW_EXPIRED when the store knows no such epoch.
        AlreadyStored: the store holds a receipt of this retry identity. Nothing was stored in any of these cases.
    """
    if saved is None:
        return
    try:
        await saved
    except StoreUnavailable as failed:
        raise Refusal(ErrorCode.STORAGE_UNAVAILABLE, failed.reason) from failed
    except ReceiptExists as exists:
        raise AlreadyStored from exists
    except RuleBroken as broken:
        if broken.rule == "epoch":
            raise Refusal(ErrorCode.RETRY_WINDOW_EXPIRED, "epoch_expired", field="/retryEpoch") from broken
        raise
