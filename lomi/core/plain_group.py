"""Tasks beside a piece of work whose own errors stay what they are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def plain_group() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group out of which the body's error comes as it is; errors of its tasks come in a group, as always.

    Its tasks have ended with the context: the body ends them before it leaves, also by an error.

    Raises:
        ExceptionGroup: a task failed.
    """
    failure: BaseException | None = None
    async with asyncio.TaskGroup() as tasks:
        try:
            yield tasks
        except BaseException as error:  # noqa: BLE001  # raised below, outside the group that would wrap it
            failure = error
    if failure is not None:
        raise failure
