"""How many may come in at once: connections are counted, handshakes may queue."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from lomi.link.errors import EnrolmentRefusedError
from lomi.link.limits import LinkLimits


class Gate:
    """Counts connections and handshakes.

    Attributes:
        connections: live connections now, handshakes included.
        refused: how many were turned away so far.
    """

    def __init__(self, limits: LinkLimits) -> None:
        self._limits = limits
        self._turns = asyncio.Semaphore(limits.max_handshakes)
        self.connections = 0
        self.refused = 0

    @contextlib.contextmanager
    def connection(self) -> Iterator[None]:
        """Hold one of the connections.

        Raises:
            EnrolmentRefusedError: all are taken.
        """
        if self.connections >= self._limits.max_connections:
            self.refused += 1
            raise EnrolmentRefusedError("connections_full")
        self.connections += 1
        try:
            yield
        finally:
            self.connections -= 1

    @contextlib.asynccontextmanager
    async def handshake(self) -> AsyncIterator[None]:
        """Hold one of the handshakes, after a wait in arrival order if the limits allow one.

        Raises:
            EnrolmentRefusedError: all are taken, or stayed taken for the whole wait.
        """
        if self._turns.locked() and self._limits.handshake_queue_seconds <= 0:
            self.refused += 1
            raise EnrolmentRefusedError("handshakes_full")
        try:
            async with asyncio.timeout(self._limits.handshake_queue_seconds or None):
                await self._turns.acquire()
        except TimeoutError:
            self.refused += 1
            raise EnrolmentRefusedError("handshakes_full") from None
        try:
            yield
        finally:
            self._turns.release()
