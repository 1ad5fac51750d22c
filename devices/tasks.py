"""A task group that hands its body's own exception on unwrapped."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def background() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group for tasks that serve the body: when only the body fails, its exception comes out as it is.

    Raises:
        BaseExceptionGroup: a task failed.
    """
    mine: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            try:
                yield group
            except BaseException as raised:
                mine = raised
                raise
    except BaseExceptionGroup as group_of:
        if mine is not None and group_of.exceptions == (mine,):
            raise mine from mine.__cause__
        raise
