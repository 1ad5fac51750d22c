"""Learn from the kernel that a name in a directory is gone: no polling, so an idle broker has no timer."""

import asyncio
import contextlib
import ctypes
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

_MOVED_FROM, _DELETE, _DELETE_SELF, _MOVE_SELF, _ONLY_DIRECTORY = 0x40, 0x200, 0x400, 0x800, 0x1000000
_GONE = _MOVED_FROM | _DELETE | _DELETE_SELF | _MOVE_SELF
_EVENTS = 4096


@contextlib.asynccontextmanager
async def watch_removals(directory: Path) -> AsyncIterator[asyncio.Event]:
    """Give an event that is set whenever something was removed from `directory`, or the directory itself was.

    Where the system offers no such watch, or has none left, the event stays unset.
    """
    changed = asyncio.Event()
    descriptor = _watch(directory)
    if descriptor is None:
        yield changed
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, _note(descriptor, changed))
    try:
        yield changed
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _note(descriptor: int, changed: asyncio.Event) -> Callable[[], None]:
    def note() -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(descriptor, _EVENTS)
        changed.set()

    return note


def _watch(directory: Path) -> int | None:
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return None
    if libc.inotify_add_watch(descriptor, os.fsencode(directory), _GONE | _ONLY_DIRECTORY) < 0:
        os.close(descriptor)
        return None
    return int(descriptor)
