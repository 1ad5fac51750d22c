"""The client for code without an event loop: the same calls, each blocking its own thread only."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lomi.client.client import Answer, Client, connect
from lomi.client.errors import ConnectionLostError
from lomi.contract.model import Input
from lomi.link.messages import Welcome


class BlockingClient:
    """A live connection, made by `connect_blocking`. Any number of threads may call."""

    def __init__(self, client: Client, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    @property
    def welcome(self) -> Welcome:
        """The broker's first words: instance, phase and pairing request."""
        return self._client.welcome

    def call(self, tool: str, arguments: Input | Mapping[str, object]) -> Answer:
        """Call a tool and return its data; an interrupt from the keyboard asks the broker to cancel it.

        Raises:
            ToolError: the broker's error envelope (`ConnectionLostError` when the connection ends first).
            InvalidArgumentsError: unknown tool, unknown field or wrong type.
            BrokerFaultError: the broker failed.
        """
        if self._loop.is_closed():
            raise ConnectionLostError
        waiting = asyncio.run_coroutine_threadsafe(self._client.call(tool, arguments), self._loop)
        try:
            return waiting.result()
        except concurrent.futures.CancelledError:
            raise ConnectionLostError from None
        finally:
            waiting.cancel()


@contextmanager
def connect_blocking(
    discovery_path: Path,
    public_key_hex: str,
    *,
    label: str,
    token: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Iterator[BlockingClient]:
    """Connect as `lomi.client.client.connect` does, on an event loop in a thread; both end with the context.

    Raises:
        LinkError: no broker, a discovery file that is not to be trusted, or no acceptance.
    """
    opened: concurrent.futures.Future[tuple[BlockingClient, Callable[[], None]]] = concurrent.futures.Future()

    async def hold() -> None:
        loop, leave = asyncio.get_running_loop(), asyncio.Event()
        async with connect(discovery_path, public_key_hex, label=label, token=token, options=options) as client:
            opened.set_result((BlockingClient(client, loop), lambda: _leave(loop, leave)))
            await leave.wait()

    def run() -> None:
        try:
            asyncio.run(hold())
        except BaseException as error:  # noqa: BLE001  # raised in the thread that asked for the connection
            if not opened.done():
                opened.set_exception(error)

    thread = threading.Thread(target=run, name="lomi-client")
    thread.start()
    try:
        client, leave = opened.result()
    except BaseException:
        thread.join()
        raise
    try:
        yield client
    finally:
        leave()
        thread.join()


def _leave(loop: asyncio.AbstractEventLoop, leave: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(leave.set)
