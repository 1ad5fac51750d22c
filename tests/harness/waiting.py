"""Waiting for what no event of ours tells of."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(asked: Callable[[], Awaitable[T]] | Callable[[], T], seconds: float = 20.0) -> T:
    """Ask again until the answer is truthy, and return it.

    Raises:
        TimeoutError: it never was.
    """
    async with asyncio.timeout(seconds):
        while True:
            answer = asked()
            if isinstance(answer, Awaitable):
                answer = await answer
            if answer:
                return answer
            await asyncio.sleep(0.01)
