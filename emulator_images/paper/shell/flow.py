"""Byte streams between commands."""

import asyncio
from typing import Protocol


class BrokenPipe(Exception):  # noqa: N818 - named as the shell names it
    """Raised when the reader of a pipe is gone."""


class Source(Protocol):
    """Where a command reads from."""

    async def read(self) -> bytes:
        """Some bytes; empty at the end."""


class Sink(Protocol):
    """Where a command writes to."""

    async def write(self, payload: bytes) -> None:
        """Take bytes."""


class Bytes:
    """A source over bytes that are already there."""

    def __init__(self, payload: bytes = b"") -> None:
        self._payload = payload

    async def read(self) -> bytes:
        """Everything, once."""
        payload, self._payload = self._payload, b""
        return payload


class Collector:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.payload = bytearray()

    async def write(self, payload: bytes) -> None:
        """Keep bytes."""
        self.payload += payload


class Discard:
    """A sink like /dev/null."""

    async def write(self, payload: bytes) -> None:
        """Take bytes and forget them."""


class Pipe:
    """Joins two commands that run at the same time; holds a bounded number of writes."""

    def __init__(self) -> None:
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(64)
        self._reader_gone = False

    async def read(self) -> bytes:
        """The next write; empty when the writer has finished."""
        return await self._chunks.get()

    async def write(self, payload: bytes) -> None:
        """Hand bytes to the reader.

        Raises:
            BrokenPipe: the reader has ended.
        """
        if self._reader_gone:
            raise BrokenPipe
        if payload:
            await self._chunks.put(payload)

    async def finish(self) -> None:
        """The writer ends."""
        if not self._reader_gone:
            await self._chunks.put(b"")

    def abandon(self) -> None:
        """The reader ends: free a waiting writer."""
        self._reader_gone = True
        while not self._chunks.empty():
            self._chunks.get_nowait()


async def read_all(source: Source) -> bytes:
    """Everything up to the end of a source."""
    parts: list[bytes] = []
    while chunk := await source.read():
        parts.append(chunk)
    return b"".join(parts)
