"""The standard streams of the helper: taken away from everyone else, read and written in bounded lines."""

import asyncio
import fcntl
import os
import selectors
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import NamedTuple

from lomi.mcp.bounds import LINE_SECONDS, MAX_LINE

_CHUNK = 256 << 10
_PIPE_BYTES = 1 << 20
_QUEUED_LINES = 16


class LineRefusedError(Exception):
    """Raised when a line is over 8 MiB, or does not end within 5 s of its first byte; the input side is closed."""


class Streams(NamedTuple):
    """Descriptors of the client's pipe, known to nobody else in this process and not inherited by children."""

    incoming: int
    outgoing: int


def take_streams() -> Streams:
    """Take descriptors 0 and 1 away: whatever prints goes to stderr from now on, whatever reads finds the end."""
    streams = Streams(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        # An answer with a picture goes out in one piece. What the system doesn't grant is no loss.
        with suppress(OSError):
            fcntl.fcntl(streams.outgoing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return streams


class LineReader:
    """Lines from a descriptor. Only one line and one chunk are held: a client that floods is held back by its pipe."""

    def __init__(self, descriptor: int, *, line_seconds: float = LINE_SECONDS) -> None:
        self._descriptor = descriptor
        self._line_seconds = line_seconds
        self._buffer = bytearray()
        self._begun: float | None = None
        self._awaited: asyncio.Future[bytes] | None = None
        self._watching = False
        self._can_be_watched = _can_be_watched(descriptor)
        self.take: Callable[[bytes], bool] = lambda _line: False
        """Offered a whole line before `lines` yields it, where that waits for nothing else; it says whether it took it.

        It must not raise.
        """

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield lines without their ends until the input ends; an unfinished last line is dropped.

        Raises:
            LineRefusedError: too long or too slow.
        """
        if self._can_be_watched:
            os.set_blocking(self._descriptor, False)
        searched = 0
        try:
            while True:
                end = self._buffer.find(b"\n", searched)
                if end >= 0:
                    searched = 0
                    yield self._cut(end)
                    # The client may have begun the next line while nobody read: its time runs from now on.
                    self._begun = asyncio.get_running_loop().time() if self._buffer else None
                    continue
                searched = len(self._buffer)
                if searched > MAX_LINE:
                    raise LineRefusedError("a line is at most 8 MiB")
                chunk = await self._more()
                if not chunk:
                    return
                if self._begun is None:
                    self._begun = asyncio.get_running_loop().time()
                self._buffer += chunk
        finally:
            self._watch(wanted=False)

    def _cut(self, end: int) -> bytes:
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        if len(line) > MAX_LINE:
            raise LineRefusedError("a line is at most 8 MiB")
        return line

    async def _more(self) -> bytes:
        if self._begun is None:
            return await self._read()
        try:
            async with asyncio.timeout_at(self._begun + self._line_seconds):
                return await self._read()
        except TimeoutError:
            raise LineRefusedError("a line must end within 5 s of its first byte") from None

    async def _read(self) -> bytes:
        if not self._can_be_watched:
            return os.read(self._descriptor, _CHUNK)
        self._watch(wanted=True)
        self._awaited = asyncio.get_running_loop().create_future()
        try:
            return await self._awaited
        finally:
            self._awaited = None

    def _readable(self) -> None:
        """Read for whoever waits. Nobody does while a line is on its way: then the pipe holds what comes."""
        if self._awaited is None or self._awaited.done():
            self._watch(wanted=False)
            return
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # the peer reset it, the terminal is gone: nothing more comes
            chunk = b""
        whole = not self._buffer and chunk.find(b"\n") == len(chunk) - 1
        if not (whole and chunk and self.take(chunk[:-1])):
            self._awaited.set_result(chunk)

    def _watch(self, *, wanted: bool) -> None:
        if wanted is self._watching:
            return
        self._watching = wanted
        loop = asyncio.get_running_loop()
        if wanted:
            loop.add_reader(self._descriptor, self._readable)
        else:
            loop.remove_reader(self._descriptor)


def _can_be_watched(descriptor: int) -> bool:
    """What the system's selector refuses (epoll a regular file or /dev/null) never makes a reader wait for long."""
    with selectors.DefaultSelector() as watched, suppress(PermissionError):
        watched.register(descriptor, selectors.EVENT_READ)
        return True
    return False


class LineWriter:
    """Whole lines to a descriptor. A sender that is cancelled leaves its line either unsent or whole."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: asyncio.Queue[memoryview] = asyncio.Queue(_QUEUED_LINES)
        self._writing = False
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.set_blocking(descriptor, False)

    @property
    def behind(self) -> bool:
        """Whether the client has yet to read as much as is kept for it."""
        return self._lines.full()

    async def send(self, line: bytes | bytearray | memoryview) -> None:
        """Put one line, without its end, on its way; waits while the client is behind."""
        if not self.send_nowait(line):
            await self._lines.put(memoryview(b"".join((line, b"\n"))))

    def send_nowait(self, line: bytes | bytearray | memoryview) -> bool:
        """Put one line, without its end, on its way, unless the client is behind; whether it is."""
        if self.behind:
            return False
        rest = memoryview(b"".join((line, b"\n")))
        if self._lines.empty() and not self._writing:
            # Nothing is before it: most lines need no other task, and no further round of the loop.
            with suppress(OSError):  # what a pipe that is full or closed did not take, `run` finds out
                rest = rest[os.write(self._descriptor, rest) :]
        if rest:
            self._lines.put_nowait(rest)
        return True

    async def sent(self) -> None:
        """Wait until all lines are with the client's pipe."""
        await self._lines.join()

    async def run(self) -> None:
        """Write lines until the client is gone."""
        while True:
            rest = await self._lines.get()
            self._writing = True
            try:
                await self._write(rest)
            except OSError:
                return
            self._writing = False
            self._lines.task_done()

    async def _write(self, rest: memoryview) -> None:
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                await _writable(self._descriptor)


async def _writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_writer(descriptor, wake)
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)
