"""Private files: 0600 in directories of our own, published atomically, read only if nobody else could write them.

All functions block; call them through `asyncio.to_thread`.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.disk.walk import absolute_names, open_directory, refusal

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = 0o022
_ATTEMPTS = 20
_UNNAMED: int = getattr(os, "O_TMPFILE", 0)
_NO_UNNAMED = {errno.EISDIR, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOENT}


class Published(NamedTuple):
    """One published file: enough to know it again after its inode number was reused."""

    device: int
    inode: int
    modified_ns: int
    length: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Published":
        """Return what `status` describes."""
        return cls(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def private_directory(path: Path) -> None:
    """Create `path` (and missing parents) with mode 0700, or check that an existing one is ours alone.

    A directory of ours that others may only read is tightened; one that others can write may already hold their files
    and is refused.

    Raises:
        DiskRefusedError: relative, a link on the way, foreign, or writable by others.
        OSError: the disk failed.
    """
    absolute_names(path)
    for missing in reversed([part for part in (path, *path.parents) if not os.path.lexists(part)]):
        with contextlib.suppress(FileExistsError):
            missing.mkdir(mode=0o700)
    directory = open_directory(path)
    try:
        status = os.fstat(directory)
        if status.st_uid != os.getuid():
            raise DiskRefusedError(Reason.FOREIGN_OWNER)
        if status.st_mode & _OTHERS_WRITE:
            raise DiskRefusedError(Reason.MODE)
        if stat.S_IMODE(status.st_mode) != 0o700:
            os.fchmod(directory, 0o700)
    finally:
        os.close(directory)


def write_private(path: Path, content: bytes, *, replace: bool = True) -> Published:
    """Publish `content` at `path` with mode 0600: whole and durable, or not at all.

    Args:
        path: absolute; its directory exists, is ours, and no component is a link.
        content: the bytes.
        replace: whether an existing file may be replaced.

    Raises:
        DiskRefusedError: the directory is not ours alone, or (without `replace`) the name is taken.
        OSError: the disk failed; the old file is intact.
    """
    with _own_directory(path) as directory:
        if replace:
            return _replace(directory, path.name, content)
        return _create(directory, path.name, content)


def read_private(path: Path, limit: int, *, mode: int = 0o600) -> bytes:
    """Read a private file of at most `limit` bytes.

    Raises:
        DiskRefusedError: relative path, a link on the way, no regular file of one name, foreign, open to others, large.
        OSError: the disk failed.
    """
    return read_published(path, limit, mode=mode)[0]


def read_published(path: Path, limit: int, *, mode: int = 0o600) -> tuple[bytes, Published]:
    """Read a private file as `read_private` does, and say which file it was."""
    if not absolute_names(path):
        raise DiskRefusedError(Reason.NOT_REGULAR)
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(_ReplacedError):
            return _read_once(path, limit, mode)
    raise DiskRefusedError(Reason.CHANGED)


class _ReplacedError(Exception):
    """Raised when the file lost its name to a newer one between opening and looking."""


def _read_once(path: Path, limit: int, mode: int) -> tuple[bytes, Published]:
    directory = open_directory(path.parent)
    try:
        descriptor = _open_regular(directory, path.name)
    finally:
        os.close(directory)
    try:
        status = os.fstat(descriptor)
        _check_private(status, mode)
        if status.st_size > limit:
            raise DiskRefusedError(Reason.TOO_LARGE)
        content = _read_up_to(descriptor, limit + 1)
        if len(content) > limit:
            raise DiskRefusedError(Reason.TOO_LARGE)
        return content, Published.of(status)
    finally:
        os.close(descriptor)


def remove_if_same(path: Path, published: Published) -> bool:
    """Remove `path` if it still is the file that was `published`; say whether it was.

    Raises:
        DiskRefusedError: the directory is not ours alone.
        OSError: the disk failed.
    """
    with _own_directory(path) as directory, _locked(directory):
        try:
            status = os.lstat(path.name, dir_fd=directory)
        except FileNotFoundError:
            return False
        if Published.of(status) != published:
            return False
        os.unlink(path.name, dir_fd=directory)
        os.fsync(directory)
        return True


@contextlib.contextmanager
def _own_directory(path: Path) -> Iterator[int]:
    if not absolute_names(path):
        raise DiskRefusedError(Reason.NOT_REGULAR)
    directory = open_directory(path.parent)
    try:
        status = os.fstat(directory)
        if status.st_uid != os.getuid():
            raise DiskRefusedError(Reason.FOREIGN_OWNER)
        if status.st_mode & _OTHERS_WRITE:
            raise DiskRefusedError(Reason.MODE)
        yield directory
    finally:
        os.close(directory)


@contextlib.contextmanager
def _locked(directory: int) -> Iterator[None]:
    # Publication and removal exclude each other, so that a check of who published and the act on it are one.
    fcntl.flock(directory, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(directory, fcntl.LOCK_UN)


def _replace(directory: int, name: str, content: bytes) -> Published:
    temporary = f".{name}.{os.getpid()}.{os.urandom(6).hex()}.tmp"
    descriptor = os.open(temporary, _NEW, 0o600, dir_fd=directory)
    try:
        try:
            _write_durably(descriptor, content)
            published = Published.of(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        with _locked(directory):
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)
    return published


def _create(directory: int, name: str, content: bytes) -> Published:
    """Give a finished, unnamed file its name: a half file never shows and nothing is ever replaced."""
    try:
        descriptor = os.open(".", os.O_WRONLY | _UNNAMED | os.O_CLOEXEC, 0o600, dir_fd=directory)
    except OSError as error:
        if error.errno not in _NO_UNNAMED:
            raise
        return _create_named(directory, name, content)
    try:
        _write_durably(descriptor, content)
        try:
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=directory, follow_symlinks=True)
        except FileExistsError as error:
            raise DiskRefusedError(Reason.EXISTS) from error
        published = Published.of(os.fstat(descriptor))
    finally:
        os.close(descriptor)
    os.fsync(directory)
    return published


def _create_named(directory: int, name: str, content: bytes) -> Published:
    """Create without unnamed files (a filesystem or system that has none): link refuses to replace as well."""
    temporary = f".{name}.{os.getpid()}.{os.urandom(6).hex()}.tmp"
    descriptor = os.open(temporary, _NEW, 0o600, dir_fd=directory)
    try:
        _write_durably(descriptor, content)
        published = Published.of(os.fstat(descriptor))
        os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError as error:
        raise DiskRefusedError(Reason.EXISTS) from error
    finally:
        os.close(descriptor)
        os.unlink(temporary, dir_fd=directory)
    os.fsync(directory)
    return published


def _write_durably(descriptor: int, content: bytes) -> None:
    os.fchmod(descriptor, 0o600)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def _open_regular(directory: int, name: str) -> int:
    try:
        return os.open(name, _FILE, dir_fd=directory)
    except OSError as error:
        if (refused := refusal(error)) is not None:
            raise refused from error
        raise


def _check_private(status: os.stat_result, mode: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DiskRefusedError(Reason.NOT_REGULAR)
    if status.st_nlink == 0:
        raise _ReplacedError
    if status.st_nlink != 1:
        raise DiskRefusedError(Reason.HARD_LINK)
    if status.st_uid != os.getuid():
        raise DiskRefusedError(Reason.FOREIGN_OWNER)
    if stat.S_IMODE(status.st_mode) != mode:
        raise DiskRefusedError(Reason.MODE)


def _read_up_to(descriptor: int, count: int) -> bytes:
    pieces = []
    while count > 0 and (piece := os.read(descriptor, min(count, 1 << 20))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
