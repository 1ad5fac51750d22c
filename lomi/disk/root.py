"""A pinned root: a directory held by descriptor, below which files are opened hardened.

All functions block; call them through `asyncio.to_thread`.
"""

import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from lomi.disk import openat2
from lomi.disk.names import split
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.disk.walk import Identity, absolute_names, descend, open_directory, refusal, step

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: a FIFO swapped in at the last moment does not hang us. NOCTTY: a terminal does not become ours.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ATTEMPTS = 20

Protected = Collection[Identity]


def identity_of(path: Path) -> Identity:
    """Return device and inode of a file or directory, for a set of protected places.

    Raises:
        OSError: there is none.
    """
    return Identity.of(path.stat())


class PinnedRoot:
    """A directory under which names may be opened, as long as the object is open.

    What it refuses is the same under every root: links, files with a second name, FIFOs, sockets and devices, names
    kept for secrets, and whatever is, or lies below, a protected place (the state directory, keys, profiles): those are
    known by device and inode, so that no other path leads to them either.

    Attributes:
        path: the path it was opened by, to show; it decides nothing.
        identity: device and inode of the directory.
        descriptor: the open directory.
    """

    def __init__(self, path: Path, descriptor: int, identity: Identity, protected: frozenset[Identity]) -> None:
        self.path = path
        self.descriptor = descriptor
        self.identity = identity
        self._protected = protected

    @classmethod
    def open(cls, path: Path, *, protected: Protected = ()) -> Self:
        """Pin the directory at an absolute path without links in it.

        Raises:
            DiskRefusedError: relative, a link on the way, no directory, or inside a protected place.
            OSError: the disk failed.
        """
        guarded = frozenset(protected)
        here = open_directory(Path("/"))
        try:
            for name in absolute_names(path):
                below = step(here, name)
                os.close(here)
                here = below
                _check_unprotected(here, guarded)
            return cls(path, here, Identity.of(os.fstat(here)), guarded)
        except BaseException:
            os.close(here)
            raise

    def open_file(self, relative: str, *, write: bool = False) -> int:
        """Open a regular file with one name; the caller closes the descriptor.

        Args:
            relative: components joined by `/`.
            write: open for reading and writing; the file is neither created nor shortened.

        Raises:
            DiskRefusedError: with the reason.
            OSError: the disk failed.
        """
        names = split(relative)
        parent = self._open_parent(names)
        try:
            return self._open_regular(parent, names[-1], os.O_RDWR if write else os.O_RDONLY)
        finally:
            os.close(parent)

    def open_directory(self, relative: str = "") -> int:
        """Open a directory below the root, or with an empty path the root itself; the caller closes the descriptor.

        Raises:
            DiskRefusedError: with the reason.
            OSError: the disk failed.
        """
        names = split(relative) if relative else ()
        directory = self._resolve(names)
        try:
            self._check_ancestry(directory, len(names))
        except BaseException:
            os.close(directory)
            raise
        return directory

    def open_parent(self, relative: str) -> tuple[int, str]:
        """Open the directory that holds `relative` and return it with the last name, for a file yet to be made."""
        names = split(relative)
        return self._open_parent(names), names[-1]

    def stands(self) -> bool:
        """Whether the path still leads to the pinned directory."""
        try:
            directory = open_directory(self.path)
        except (DiskRefusedError, OSError):
            return False
        try:
            return Identity.of(os.fstat(directory)) == self.identity
        finally:
            os.close(directory)

    def close(self) -> None:
        """Let go of the directory."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open_parent(self, names: Sequence[str]) -> int:
        directory = self._resolve(names[:-1])
        try:
            self._check_ancestry(directory, len(names) - 1)
        except BaseException:
            os.close(directory)
            raise
        return directory

    def _resolve(self, names: Sequence[str]) -> int:
        if not names:
            return os.dup(self.descriptor)
        if not openat2.available():
            return descend(self.descriptor, names)
        try:
            return openat2.open_beneath(self.descriptor, "/".join(names), os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            if (refused := refusal(error)) is None:
                raise
            raise refused from error

    def _check_ancestry(self, directory: int, depth: int) -> None:
        """Climb from a directory back to the root: each step must be unprotected, and the last one must be the root.

        This also catches a directory that was moved out while it was being opened.
        """
        here = os.dup(directory)
        try:
            for _ in range(depth):
                _check_unprotected(here, self._protected)
                above = os.open("..", _DIRECTORY, dir_fd=here)
                os.close(here)
                here = above
            if Identity.of(os.fstat(here)) != self.identity:
                raise DiskRefusedError(Reason.CHANGED)
        finally:
            os.close(here)

    def _open_regular(self, parent: int, name: str, access: int) -> int:
        """Open a file; one that is being saved by renaming changes under us, so a change is looked at again."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._open_once(parent, name, access)
            except DiskRefusedError as error:
                if error.reason is not Reason.CHANGED:
                    raise
        return self._open_once(parent, name, access)

    def _open_once(self, parent: int, name: str, access: int) -> int:
        try:
            # Looked at before it is opened: opening a device can have effects of its own.
            before = os.lstat(name, dir_fd=parent)
            self._check_file(before)
            descriptor = os.open(name, access | _FILE, dir_fd=parent)
        except OSError as error:
            if (refused := refusal(error)) is None:
                raise
            raise refused from error
        try:
            self._check_opened(os.fstat(descriptor), before)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _check_opened(self, status: os.stat_result, before: os.stat_result) -> None:
        if status.st_nlink == 0 or Identity.of(status) != Identity.of(before):
            raise DiskRefusedError(Reason.CHANGED)
        self._check_file(status)

    def _check_file(self, status: os.stat_result) -> None:
        if stat.S_ISLNK(status.st_mode):
            raise DiskRefusedError(Reason.SYMLINK)
        if not stat.S_ISREG(status.st_mode):
            raise DiskRefusedError(Reason.NOT_REGULAR)
        if Identity.of(status) in self._protected:
            raise DiskRefusedError(Reason.PROTECTED)
        if status.st_nlink == 0:
            # Renamed over between the look-up of its name and this look at it.
            raise DiskRefusedError(Reason.CHANGED)
        if status.st_nlink != 1:
            raise DiskRefusedError(Reason.HARD_LINK)


def _check_unprotected(descriptor: int, protected: frozenset[Identity]) -> None:
    if Identity.of(os.fstat(descriptor)) in protected:
        raise DiskRefusedError(Reason.PROTECTED)
