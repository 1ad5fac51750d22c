"""The store's failures as refusals, in one place."""

import asyncio

from lomi.contract.codes import ErrorCode
from lomi.core.refusal import Refusal
from lomi.store import StoreFull, StoreUnavailable


async def storing(saved: "asyncio.Future[None] | None") -> None:
    """Return when a write is durable; the write goes on when the caller is cancelled.

    Raises:
        Refusal: STORAGE_UNAVAILABLE or RESOURCE_EXHAUSTED; nothing was stored.
    """
    if saved is None:
        return
    try:
        await asyncio.shield(saved)
    except StoreFull as full:
        raise Refusal(ErrorCode.RESOURCE_EXHAUSTED, full.reason) from full
    except StoreUnavailable as failed:
        raise Refusal(ErrorCode.STORAGE_UNAVAILABLE, failed.reason) from failed
