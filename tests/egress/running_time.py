"""How long something takes on a machine that may stand still meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

_TURN_S = 0.005


async def own_time(work: Awaitable[object]) -> float:
    """Seconds that something takes while this process runs: where the machine stands still, it is a turn of the loop.

    The loop turns all the time meanwhile, so whatever waits for a timer is counted in full.
    """
    doing, passed, last = asyncio.ensure_future(work), 0.0, time.perf_counter()
    while not doing.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        passed, last = passed + min(now - last, _TURN_S), now
    await doing
    return passed
