"""Blocking work in threads that nobody leaves behind: whoever is cancelled waits until the thread has done."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Run `work` in a thread and leave, even when cancelled, only when it is done: nobody writes any more then."""
    return await whole(asyncio.get_running_loop().run_in_executor(None, partial(work, *arguments)))


async def whole(running: "asyncio.Future[T]") -> T:
    """What a thread gives; a cancelled caller leaves when it is done."""
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await over(running)
        raise


async def shut(named: "asyncio.Future[int] | None") -> None:
    """Close the descriptor that a thread opened, if it did."""
    if named is not None:
        await over(named)
        if named.exception() is None:
            os.close(named.result())


async def over(running: "asyncio.Future[Any]") -> None:
    """Wait for a thread through any number of cancellations, for one of which the caller is about to leave."""
    while not running.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({running})
