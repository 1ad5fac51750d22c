"""An event loop in a thread of its own, for code that has none: it holds one asynchronous context open."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Generic, TypeVar

from lomi.client.errors import ConnectionLostError

T = TypeVar("T")
HeldT = TypeVar("HeldT")


class LoopThread(Generic[HeldT]):
    """The running loop and what it holds open. Any number of threads may call `run`."""

    def __init__(self, held: HeldT, loop: asyncio.AbstractEventLoop, leave: asyncio.Event) -> None:
        self.held = held
        self._loop = loop
        self._leave = leave

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run one coroutine on the loop and wait for it; an interrupt from the keyboard cancels it.

        Raises:
            ConnectionLostError: the loop has ended.
        """
        if self._loop.is_closed():
            work.close()
            raise ConnectionLostError
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result()
        except concurrent.futures.CancelledError:
            raise ConnectionLostError from None
        finally:
            waiting.cancel()

    def leave(self) -> None:
        """Let the context end."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._leave.set)


@contextmanager
def loop_thread(opening: Callable[[], AbstractAsyncContextManager[HeldT]], name: str) -> Iterator[LoopThread[HeldT]]:
    """Enter a context on an event loop in a thread; both end with this context. What entering raises is raised here."""
    opened: concurrent.futures.Future[LoopThread[HeldT]] = concurrent.futures.Future()

    async def hold() -> None:
        leave = asyncio.Event()
        async with opening() as held:
            opened.set_result(LoopThread(held, asyncio.get_running_loop(), leave))
            await leave.wait()

    def run() -> None:
        try:
            asyncio.run(hold())
        except BaseException as error:  # noqa: BLE001  # raised in the thread that asked for the context
            if not opened.done():
                opened.set_exception(error)

    thread = threading.Thread(target=run, name=name)
    thread.start()
    try:
        made = opened.result()
    except BaseException:
        thread.join()
        raise
    try:
        yield made
    finally:
        made.leave()
        thread.join()
