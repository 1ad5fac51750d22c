"""A whole new file in an open directory, under a name that nothing has, and what such a directory holds by now."""

import errno
import hashlib
import json
import os

from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.disk.walk import refusal

_MODE = 0o644
_UNNAMED: int = getattr(os, "O_TMPFILE", 0)
_NO_UNNAMED = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL})
"""What file systems that can't make unnamed files say, as FUSE and NFS. Source: open(2)."""


def revision_of(directory: int) -> str:
    """What an open directory is and holds, as 64 hex digits: device, inode, both times and the names in it. Blocks."""
    status = os.fstat(directory)
    names = sorted(os.fsencode(name).hex() for name in os.listdir(directory))
    told = [status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, names]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def place_new(directory: int, name: str, content: bytes, *, expected_revision: str) -> None:
    """Write a file and give it its name: whole or not at all, and never in place of another. Blocks.

    Args:
        directory: descriptor of the directory.
        name: one name, already checked.
        content: all of it.
        expected_revision: what `revision_of` said when the caller looked.

    Raises:
        DiskRefusedError: CHANGED, EXISTS, or what the system denies; nothing was made.
        OSError: the disk failed; nothing was made unless only the directory could not be synced.
    """
    if _exists(directory, name):
        raise DiskRefusedError(Reason.EXISTS)
    if revision_of(directory) != expected_revision:
        raise DiskRefusedError(Reason.CHANGED)
    try:
        _place(directory, name, content, expected_revision)
    except FileExistsError as error:
        raise DiskRefusedError(Reason.EXISTS) from error
    except OSError as error:
        if (refused := refusal(error)) is None:
            raise
        raise refused from error
    os.fsync(directory)


def _exists(directory: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def _place(directory: int, name: str, content: bytes, expected_revision: str) -> None:
    descriptor = _unnamed(directory)
    if descriptor is None:
        _place_named(directory, name, content)
        return
    try:
        _write(descriptor, content)
        if revision_of(directory) != expected_revision:
            raise DiskRefusedError(Reason.CHANGED)
        os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=directory, follow_symlinks=True)
    finally:
        os.close(descriptor)


def _unnamed(directory: int) -> int | None:
    """A file without a name, None where the system or the volume has none."""
    if not _UNNAMED:
        return None
    try:
        return os.open(".", os.O_WRONLY | _UNNAMED | os.O_CLOEXEC, _MODE, dir_fd=directory)
    except OSError as error:
        if error.errno in _NO_UNNAMED:
            return None
        raise


def _place_named(directory: int, name: str, content: bytes) -> None:
    """Where there are no unnamed files: a link refuses to replace as well."""
    temporary = f".{os.getpid()}.{os.urandom(8).hex()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE, dir_fd=directory)
    try:
        _write(descriptor, content)
        os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    finally:
        os.close(descriptor)
        os.unlink(temporary, dir_fd=directory)


def _write(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)
