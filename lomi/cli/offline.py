"""The store of a home without a broker: opened as the next broker would open it, and closed again."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lomi.contract.limits import LAB
from lomi.core.failpoints import Failpoints
from lomi.store import Store


class _Clock:
    """The machine's clock (the port's `Clock`), without the adapters that `lomi.host` brings along."""

    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def offline_store(home: Path) -> AsyncIterator[Store]:
    """Own the store of `home` for a moment; unfinished receipts of a dead broker are settled as at any opening.

    Raises:
        StoreLocked: a broker owns it.
        StoreRefused: it is damaged, newer, rolled back or not private; nothing was changed.
        StoreUnavailable: the disk is full or failed.
    """
    opening = Store.open(home, instance_id=str(uuid.uuid4()), limits=LAB, clock=_Clock(), failpoints=Failpoints({}))
    async with opening as store:
        yield store
