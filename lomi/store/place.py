"""The private directory of the stores, and the lock that says which broker owns it."""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lomi.core.processes import start_ticks
from lomi.disk.private import private_directory
from lomi.disk.refusal import DiskRefusedError
from lomi.store.failure import Owner, StoreLocked, StoreRefused, StoreUnavailable, failure_reason

DIRECTORY = "agent-control"
_LOCK = "owner.lock"
_NEW = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
# A link, a pipe or socket, a directory, a file that others own.
_STRANGE = frozenset({errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENOTDIR, errno.EACCES, errno.EPERM})
_held: dict[tuple[int, int], str] = {}

NOT_PRIVATE_HINT = (
    "Only a regular file of your own with mode 0600 and one name is opened; put it right or move it away."
)


def open_private(path: Path, flags: int = _NEW) -> int:
    """Open a file of ours without following a link, creating it 0600 where `flags` say so; the caller closes it.

    Raises:
        StoreRefused: not a regular file with one name, of this user, closed to others.
        OSError: absent and not to be created, or the disk failed.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno not in _STRANGE:
            raise
        raise StoreRefused("not_private", path, NOT_PRIVATE_HINT) from error
    status = os.fstat(descriptor)
    plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    if not plain or status.st_uid != os.getuid() or status.st_mode & 0o077:
        os.close(descriptor)
        raise StoreRefused("not_private", path, NOT_PRIVATE_HINT)
    return descriptor


def private_place(path: Path) -> Path:
    """Make or check a 0700 directory of ours and return it.

    Raises:
        StoreRefused: a link on the way, another's, or open to others.
        StoreUnavailable: the disk is full or failed.
    """
    try:
        private_directory(path)
    except DiskRefusedError as error:
        raise StoreRefused("not_private", path, "Use a directory of your own that no link leads to.") from error
    except OSError as error:
        raise StoreUnavailable(failure_reason(error, path)) from error
    return path


@contextlib.contextmanager
def owned(home: Path, instance_id: str) -> Iterator[Path]:
    """Own the stores of `home` for as long as the context lasts; yields their directory.

    A POSIX lock belongs to the process: a child that inherited the descriptor can neither hold nor drop it, which
    it can with `flock`. Such a lock never conflicts inside one process, hence the table of what is held here.

    Raises:
        StoreLocked: another broker, or this process itself, owns it.
        StoreRefused: the directory or the lock file is not private.
    """
    directory = private_place(home / DIRECTORY)
    path = directory / _LOCK
    if (holder := _held_here(path)) is not None:
        raise StoreLocked(Owner(os.getpid(), start_ticks(os.getpid()) or 0, holder))
    descriptor = open_private(path)
    status = os.fstat(descriptor)
    key = (status.st_dev, status.st_ino)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreLocked(_read_owner(descriptor)) from error
        _held[key] = instance_id
        try:
            _write_owner(descriptor, Owner(os.getpid(), start_ticks(os.getpid()) or 0, instance_id))
            yield directory
        finally:
            os.ftruncate(descriptor, 0)
            del _held[key]
    finally:
        os.close(descriptor)


def _held_here(path: Path) -> str | None:
    # Looked at without opening: closing any descriptor of the file would drop this process's own lock.
    try:
        status = path.lstat()
    except OSError:
        return None
    return _held.get((status.st_dev, status.st_ino))


def _write_owner(descriptor: int, owner: Owner) -> None:
    content = msgspec.json.encode(owner)
    # The lock is what counts; on a full disk nobody learns who holds it.
    with contextlib.suppress(OSError):
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))


def _read_owner(descriptor: int) -> Owner | None:
    try:
        return msgspec.json.decode(os.pread(descriptor, 4096, 0), type=Owner)
    except (msgspec.DecodeError, OSError):
        return None
