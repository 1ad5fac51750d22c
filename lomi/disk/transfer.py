"""Copying an opened file out, and proving that what arrived is what was meant."""

import asyncio
import hashlib
import os
import threading
from typing import NamedTuple

from lomi.disk.refusal import DiskRefusedError, Reason

_PIECE = 1 << 20


class Copied(NamedTuple):
    """What a finished copy holds: its length in bytes and its SHA-256 as 64 hex digits."""

    length: int
    sha256: str


class _Version(NamedTuple):
    device: int
    inode: int
    length: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, descriptor: int) -> "_Version":
        status = os.fstat(descriptor)
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


async def copy_verified(
    source: int,
    sink: int,
    *,
    expected_length: int | None = None,
    expected_sha256: str | None = None,
    limit: int,
) -> Copied:
    """Copy a regular file from its first byte to its last, in a thread, and check it.

    The bytes are written to `sink` at its position and are not synced. When cancelled, it waits for the thread to let
    go of both descriptors, at most one piece of 1 MiB later.

    Args:
        source: descriptor to read, from offset 0; its position is not used.
        sink: descriptor to write.
        expected_length: bytes that there must be.
        expected_sha256: hash that they must have, 64 hex digits.
        limit: most bytes that may be copied.

    Raises:
        DiskRefusedError: too large, another length or hash, or the source changed during the copy.
        OSError: the disk failed.
    """
    stop = threading.Event()
    copying = asyncio.get_running_loop().run_in_executor(None, _copy, source, sink, limit, expected_length, stop)
    try:
        copied = await asyncio.shield(copying)
    except asyncio.CancelledError:
        stop.set()
        # The descriptors are closed by the caller, and their numbers used again: the thread must be done with them.
        await asyncio.wait({copying})
        raise
    if expected_sha256 is not None and copied.sha256 != expected_sha256.lower():
        raise DiskRefusedError(Reason.HASH)
    return copied


def _copy(source: int, sink: int, limit: int, expected_length: int | None, stop: threading.Event) -> Copied:
    before = _Version.of(source)
    if before.length > limit:
        raise DiskRefusedError(Reason.TOO_LARGE)
    if expected_length is not None and before.length != expected_length:
        raise DiskRefusedError(Reason.LENGTH)
    digest = hashlib.sha256()
    position = 0
    while position < before.length and not stop.is_set():
        piece = os.pread(source, min(_PIECE, before.length - position), position)
        if not piece:
            raise DiskRefusedError(Reason.CHANGED)
        digest.update(piece)
        _write_all(sink, piece)
        position += len(piece)
    if _Version.of(source) != before:
        raise DiskRefusedError(Reason.CHANGED)
    return Copied(position, digest.hexdigest())


def _write_all(sink: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(sink, rest) :]
