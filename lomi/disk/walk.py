"""Directories reached without following a link, one component at a time."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lomi.disk.refusal import DiskRefusedError, Reason

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REFUSALS = {
    errno.ENOENT: Reason.NOT_FOUND,
    errno.ELOOP: Reason.SYMLINK,
    errno.ENOTDIR: Reason.NOT_DIRECTORY,
    errno.EACCES: Reason.DENIED,
    errno.EPERM: Reason.DENIED,
    errno.ENAMETOOLONG: Reason.NAME_TOO_LONG,
    errno.EXDEV: Reason.CHANGED,
    errno.EAGAIN: Reason.CHANGED,
    errno.ENXIO: Reason.NOT_REGULAR,
    errno.ENODEV: Reason.NOT_REGULAR,
    errno.EEXIST: Reason.EXISTS,
}


class Identity(NamedTuple):
    """What a name pointed at: device and inode. Names only confirm."""

    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Identity":
        """Return the identity that `status` describes."""
        return cls(status.st_dev, status.st_ino)


def refusal(error: OSError) -> DiskRefusedError | None:
    """Translate the errno of a failed open into a refusal; None when it is a real fault of the disk."""
    reason = _REFUSALS.get(error.errno or 0)
    return None if reason is None else DiskRefusedError(reason)


def step(directory: int, name: str) -> int:
    """Open the directory `name` inside the open `directory`.

    Raises:
        DiskRefusedError: there is no such directory, or a link in its place.
        OSError: the disk failed.
    """
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError as error:
        # O_DIRECTORY|O_NOFOLLOW says ENOTDIR for a symlink too; the refusal stands, only its reason is looked up.
        if error.errno == errno.ENOTDIR and _is_link(directory, name):
            raise DiskRefusedError(Reason.SYMLINK) from error
        if (refused := refusal(error)) is not None:
            raise refused from error
        raise


def _is_link(directory: int, name: str) -> bool:
    try:
        return (os.lstat(name, dir_fd=directory).st_mode & 0o170000) == 0o120000
    except OSError:
        return False


def descend(directory: int, names: Sequence[str]) -> int:
    """Open the directory that `names` lead to from the open `directory`; the caller closes the result.

    Raises:
        DiskRefusedError: a name on the way is missing, a link or no directory.
        OSError: the disk failed.
    """
    here = os.dup(directory)
    for name in names:
        try:
            below = step(here, name)
        finally:
            os.close(here)
        here = below
    return here


def absolute_names(path: Path) -> tuple[str, ...]:
    """Return the names of an absolute path below `/`.

    Raises:
        DiskRefusedError: the path is relative or holds `..`.
    """
    if not path.is_absolute():
        raise DiskRefusedError(Reason.NOT_ABSOLUTE)
    names = path.parts[1:]
    if ".." in names or any("\0" in name for name in names):
        raise DiskRefusedError(Reason.NAME_INVALID)
    return names


def open_directory(path: Path) -> int:
    """Open an absolute directory none of whose components is a link; the caller closes the result.

    Raises:
        DiskRefusedError: relative path, a link, or no directory.
        OSError: the disk failed.
    """
    names = absolute_names(path)
    top = os.open("/", _DIRECTORY)
    try:
        return descend(top, names)
    finally:
        os.close(top)
