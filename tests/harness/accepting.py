"""The end of a test's own server, at which the engine may just be connecting."""

import asyncio


async def close_quietly(server: asyncio.Server) -> None:
    """Close a server between two connections: asyncio drops one whose acceptance is under way, unclosed."""
    while under_way := [task for task in asyncio.all_tasks() if _accepts(task)]:
        await asyncio.wait(under_way)
    server.close()


def _accepts(task: "asyncio.Task[object]") -> bool:
    return getattr(task.get_coro(), "__name__", "") == "_accept_connection2"
