"""The pipe: lines of the client to the broker's MCP session and back; a local session while there is no broker.

It never reconnects after a loss: from then on a local session answers everything with CONTROL_REVOKED.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Literal, Protocol

from lomi.link.connection import BrokerConnection
from lomi.link.errors import LinkError
from lomi.link.frames import Frame, Kind
from lomi.mcp.bounds import END_OF_INPUT, FAREWELL_SECONDS
from lomi.mcp.journal import Journal
from lomi.mcp.stdio import LineReader, LineRefusedError, LineWriter

_INVALID_REQUEST = -32600
_GOODBYE_SECONDS = FAREWELL_SECONDS + 1.0

Phase = Literal["app_unavailable", "connected", "disconnected"]
Connect = Callable[[], AbstractAsyncContextManager[BrokerConnection]]


class Standing(Protocol):
    """What a local session may ask of the pipe."""

    @property
    def phase(self) -> Phase:
        """How the pipe stands to the broker."""
        ...

    @property
    def absence(self) -> str:
        """Why there is no broker, as a reason of the link."""
        ...

    async def look(self) -> bool:
        """Look for a broker once more, unless there was one; say whether it is there now."""
        ...


SendLine = Callable[[bytes], Awaitable[None]]
ServeLocally = Callable[[AsyncIterator[bytes], SendLine, Standing], Coroutine[None, None, None]]
"""Serves MCP over a local backend; imported and called only when it is needed."""


class Pipe:
    """One client's lines, from its first to its last."""

    def __init__(
        self,
        reader: LineReader,
        writer: LineWriter,
        connect: Connect,
        serve_locally: ServeLocally,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._connect = connect
        self._serve_locally = serve_locally
        self._tasks = tasks
        self._journal = Journal()
        self._phase: Phase = "app_unavailable"
        self._absence = "discovery_absent"
        self._ending = False
        self._looking = asyncio.Lock()
        self._broker: BrokerConnection | None = None
        self._staying: asyncio.Task[None] | None = None
        self._local_lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._local: asyncio.Task[None] | None = None

    @property
    def phase(self) -> Phase:
        """How the pipe stands to the broker."""
        return self._phase

    @property
    def absence(self) -> str:
        """Why there is no broker, as a reason of the link."""
        return self._absence

    async def look(self) -> bool:
        """Look for a broker once more, unless there was one; say whether it is there now."""
        async with self._looking:
            if self._phase == "app_unavailable" and not self._ending:
                outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._staying = self._tasks.create_task(self._stay(outcome))
                await outcome
        return self._phase == "connected"

    async def carry(self) -> str | None:
        """Carry lines until the client closes its side; return why its side was closed on it, if it was."""
        await self.look()
        self._reader.take = self._forward_now
        try:
            async for line in self._reader.lines():
                await self._forward(line)
        except LineRefusedError as refused:
            error = {"code": _INVALID_REQUEST, "message": str(refused)}
            await self._writer.send(json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())
            return str(refused)
        return None

    async def say_goodbye(self) -> None:
        """Tell both sessions that no line follows; calls under way get a moment to answer."""
        self._ending = True
        leaving = {task for task in (self._staying, self._local) if task is not None and not task.done()}
        self._local_lines.put_nowait(END_OF_INPUT)
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                if self._broker is not None:
                    await self._broker.send(Frame(Kind.MCP, END_OF_INPUT))
                if leaving:
                    await asyncio.wait(leaving)
                await self._writer.sent()
        except (TimeoutError, LinkError):
            pass
        for task in leaving:
            task.cancel()

    async def _forward(self, line: bytes) -> None:
        if self._phase == "app_unavailable":
            await self.look()
        # From here to the choice of the session nothing waits: a loss either finds the line noted, or comes before it.
        self._journal.outgoing(line)
        if self._broker is None:
            self._to_local(line)
            return
        try:
            await self._broker.send(Frame(Kind.MCP, line or b" "))
        except LinkError:
            return  # the task that receives sees the same end, and finds this line among those under way

    def _forward_now(self, line: bytes) -> bool:
        """Carry a line without a turn of a task; whether the broker is there and keeps up."""
        if self._broker is None or not self._broker.writable:
            return False
        self._journal.outgoing(line)
        with suppress(LinkError):  # as in `_forward`
            self._broker.send_nowait(Frame(Kind.MCP, line or b" "))
        return True

    async def _stay(self, outcome: "asyncio.Future[None]") -> None:
        """Hold the connection for its whole life. `outcome` is set once it stands or is known not to."""
        try:
            async with self._connect() as broker:
                for line in self._journal.opening():
                    await broker.send(Frame(Kind.MCP, line))
                self._broker, self._phase = broker, "connected"
                broker.offer(self._to_client_now)
                _settle(outcome)
                await self._receive(broker)
        except LinkError as error:
            self._absence = error.reason
        _settle(outcome)
        if self._phase == "connected" and not self._ending:
            self._lose()

    async def _receive(self, broker: BrokerConnection) -> None:
        async for frame in broker.frames():
            if frame.kind is Kind.MCP:
                await self._to_client(frame.body)

    def _lose(self) -> None:
        """From now on a local session answers, first of all what the broker left unanswered."""
        self._broker, self._phase = None, "disconnected"
        for line in self._journal.under_way():
            self._to_local(line)

    def _to_local(self, line: bytes) -> None:
        if self._local is None:
            for opening in self._journal.opening():
                self._local_lines.put_nowait(opening)
            self._local = self._tasks.create_task(self._serve_locally(self._lines(), self._to_client, self))
        self._local_lines.put_nowait(line)

    async def _lines(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._local_lines.get()

    async def _to_client(self, line: bytes | bytearray | memoryview) -> None:
        if self._journal.incoming(line):
            await self._writer.send(line)

    def _to_client_now(self, frame: Frame) -> bool:
        """Carry an answer without a turn of a task; whether the client keeps up."""
        if frame.kind is not Kind.MCP or self._writer.behind:
            return False
        if self._journal.incoming(frame.body):
            self._writer.send_nowait(frame.body)
        return True


def _settle(outcome: "asyncio.Future[None]") -> None:
    if not outcome.done():
        outcome.set_result(None)
