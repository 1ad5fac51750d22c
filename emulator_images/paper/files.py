"""The phone's file tree, in memory."""

import fnmatch
import io
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from emulator_images.paper.shell.interpreter import FileError

KEPT_IN_MEMORY = 64 * 1024

NOT_FOUND = "No such file or directory"
IS_DIRECTORY = "Is a directory"
NOT_DIRECTORY = "Not a directory"
READ_ONLY = "Read-only file system"
DENIED = "Permission denied"
NO_SPACE = "No space left on device"

_LINKS = {"/sdcard": "/storage/emulated/0", "/storage/self/primary": "/storage/emulated/0", "/etc": "/system/etc",
          "/bin": "/system/bin", "/mnt/sdcard": "/storage/emulated/0"}  # fmt: skip
_DIRECTORIES = (
    "/system/bin", "/system/etc", "/system/app", "/system/framework", "/system/priv-app", "/vendor", "/apex",
    "/data/local/tmp", "/data/app", "/proc", "/data/data", "/data/system", "/data/anr", "/data/tombstones", "/dev",
    "/sys", "/cache", "/mnt", "/storage/emulated/0/Android/data", "/storage/emulated/0/DCIM",
    "/storage/emulated/0/Download", "/storage/emulated/0/Pictures", "/storage/emulated/0/Documents",
)  # fmt: skip
_KEPT = ("/data/local/", "/storage/")  # what user data holds of the file tree
_CLOSED = ("/data/app", "/data/data", "/data/system")  # directories a shell user can't list


@dataclass(slots=True)
class Entry:
    """A file or directory; `mode` with its type bits, `modified` in seconds since the epoch.

    A large content lies in a host file, `spool`, so that a phone stays small in memory.
    """

    mode: int
    modified: int
    payload: bytes = b""
    spool: Path | None = None

    @property
    def size(self) -> int:
        """Bytes in it; 4096 for a directory."""
        if stat.S_ISDIR(self.mode):
            return 4096
        return self.spool.stat().st_size if self.spool else len(self.payload)

    def opened(self) -> IO[bytes]:
        """The content as a stream."""
        return self.spool.open("rb") if self.spool else io.BytesIO(self.payload)

    def content(self) -> bytes:
        """All of the content."""
        with self.opened() as source:
            return source.read()


class SavedFile(msgspec.Struct, frozen=True):
    """One file or directory as user data keeps it; `spool` names the host file of a large content."""

    path: str
    mode: int
    modified: int
    payload: bytes = b""
    spool: str = ""


class FileTree:
    """Files by absolute path. `room` is how many bytes /data can take in all; links are followed.

    Contents of more than `KEPT_IN_MEMORY` bytes go to host files below `spools`.
    """

    def __init__(self, now: Callable[[], float], room: int, spools: Path, is_full: Callable[[], bool]) -> None:
        self._now = now
        self._is_full = is_full
        self._spools = spools
        self.room = room
        self.root = False
        self._entries: dict[str, Entry] = {"/": Entry(stat.S_IFDIR | 0o755, int(now()))}
        self._made: dict[str, Callable[[], bytes]] = {}
        for path in _DIRECTORIES:
            self._make_parents(path + "/x", 0o771)

    def provide(self, path: str, content: Callable[[], bytes]) -> None:
        """A read-only file whose content is made when read."""
        self._make_parents(path, 0o755)
        self._made[path] = content

    def resolve(self, path: str) -> str:
        """The real absolute path: links followed, `.` and `..` taken out."""
        parts: list[str] = []
        for part in path.split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part not in {"", "."}:
                parts.append(part)
        clean = "/" + "/".join(parts)
        for link, target in _LINKS.items():
            if clean == link or clean.startswith(link + "/"):
                return target + clean[len(link) :]
        return clean

    def find(self, path: str) -> Entry | None:
        """The entry of a path, None when there is none."""
        real = self.resolve(path)
        if real in self._made:
            return Entry(stat.S_IFREG | 0o444, int(self._now()), self._made[real]())
        return self._entries.get(real)

    def is_directory(self, path: str) -> bool:
        """Whether a directory is there."""
        entry = self.find(path)
        return entry is not None and stat.S_ISDIR(entry.mode)

    def children(self, path: str) -> list[str]:
        """Names in a directory, sorted.

        Raises:
            FileError: no directory, or one that the shell user may not list.
        """
        real = self.resolve(path)
        entry = self.find(real)
        if entry is None:
            raise FileError(NOT_FOUND)
        if not stat.S_ISDIR(entry.mode):
            raise FileError(NOT_DIRECTORY)
        if real in _CLOSED and not self.root:
            raise FileError(DENIED)
        prefix = real.rstrip("/") + "/"
        names = {name for name in self._paths() if name.startswith(prefix)}
        links = {link.rsplit("/", 1)[1] for link in _LINKS if link.rsplit("/", 1)[0] + "/" == prefix}
        return sorted({name[len(prefix) :].split("/")[0] for name in names if name != prefix} | links)

    def below(self, path: str) -> Iterator[str]:
        """Every path under a directory, itself first."""
        real = self.resolve(path)
        yield real
        yield from sorted(name for name in self._paths() if name.startswith(real.rstrip("/") + "/"))

    def read(self, path: str) -> bytes:
        """A file's bytes.

        Raises:
            FileError: it is missing or a directory.
        """
        entry = self.find(path)
        if entry is None:
            raise FileError(NOT_FOUND)
        if stat.S_ISDIR(entry.mode):
            raise FileError(IS_DIRECTORY)
        return entry.content()

    def spool(self) -> tempfile.SpooledTemporaryFile[bytes]:
        """A place to gather content of unknown size in; give it to `adopt`."""
        return tempfile.SpooledTemporaryFile(KEPT_IN_MEMORY, dir=str(self._spools))

    def adopt(self, path: str, gathered: IO[bytes], *, mode: int, modified: int) -> None:
        """Write a file from a stream.

        Raises:
            FileError: as `write`.
        """
        size = gathered.seek(0, io.SEEK_END)
        gathered.seek(0)
        if size <= KEPT_IN_MEMORY:
            self.write(path, gathered.read(), mode=mode, modified=modified)
            return
        self._check_room(path, size)
        self.write(path, b"", mode=mode, modified=modified)
        with tempfile.NamedTemporaryFile(dir=self._spools, prefix="content-", delete=False) as target:
            while chunk := gathered.read(KEPT_IN_MEMORY):
                target.write(chunk)
        self._entries[self.resolve(path)].spool = Path(target.name)

    def write(
        self, path: str, payload: bytes, *, append: bool = False, mode: int = 0o660, modified: int | None = None
    ) -> None:
        """Write a file.

        Raises:
            FileError: the parent is missing, the place is read-only, or there is no room.
        """
        real = self.resolve(path)
        self._check_writable(real)
        parent = self._entries.get(real.rsplit("/", 1)[0] or "/")
        if parent is None:
            raise FileError(NOT_FOUND)
        if not stat.S_ISDIR(parent.mode):
            raise FileError(NOT_DIRECTORY)
        old = self._entries.get(real)
        if old is not None and stat.S_ISDIR(old.mode):
            raise FileError(IS_DIRECTORY)
        content = old.content() + payload if old is not None and append else payload
        self._check_room(real, len(content))
        kept = old.mode if old is not None and modified is None else stat.S_IFREG | mode
        self._forget(real)
        self._entries[real] = Entry(kept, int(self._now()) if modified is None else modified, content)

    def make_directory(self, path: str, *, parents: bool) -> None:
        """Make a directory.

        Raises:
            FileError: it exists, its parent does not, or the place is read-only.
        """
        real = self.resolve(path)
        self._check_writable(real)
        entry = self._entries.get(real)
        if entry is not None:
            if parents and stat.S_ISDIR(entry.mode):
                return
            raise FileError("File exists")
        if parents:
            self._make_parents(real + "/x", 0o771)
        elif not self.is_directory(real.rsplit("/", 1)[0] or "/"):
            raise FileError(NOT_FOUND)
        else:
            self._entries[real] = Entry(stat.S_IFDIR | 0o771, int(self._now()))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file, or with `recursive` a directory and what is in it.

        Raises:
            FileError: it is missing, a directory, or in a read-only place.
        """
        real = self.resolve(path)
        entry = self.find(real)
        if entry is None:
            raise FileError(NOT_FOUND)
        self._check_writable(real)
        if stat.S_ISDIR(entry.mode) and not recursive:
            raise FileError(IS_DIRECTORY)
        for name in list(self.below(real)):
            self._forget(name)

    def rename(self, old: str, new: str) -> None:
        """Move a file or directory; into a directory when `new` is one.

        Raises:
            FileError: `old` is missing, or either place is read-only.
        """
        source, target = self.resolve(old), self.resolve(new)
        if source not in self._entries:
            raise FileError(NOT_FOUND)
        self._check_writable(source)
        self._check_writable(target)
        if self.is_directory(target):
            target = f"{target.rstrip('/')}/{source.rsplit('/', 1)[1]}"
        if not self.is_directory(target.rsplit("/", 1)[0] or "/"):
            raise FileError(NOT_FOUND)
        for name in list(self.below(source)):
            self._entries[target + name[len(source) :]] = self._entries.pop(name)

    def set_mode(self, path: str, mode: int) -> None:
        """Change permission bits.

        Raises:
            FileError: nothing is there.
        """
        entry = self._entries.get(self.resolve(path))
        if entry is None:
            raise FileError(NOT_FOUND)
        entry.mode = stat.S_IFMT(entry.mode) | mode

    def matching(self, pattern: str) -> list[str]:
        """Paths that match a shell pattern, sorted; hidden ones only when asked for."""
        depth = pattern.count("/")
        real = self.resolve(pattern)
        shift = len(real) - len(pattern)
        names = (name for name in self._paths() if name.count("/") == depth + (real.count("/") - depth))
        found = sorted(name for name in names if fnmatch.fnmatchcase(name, real) and "/." not in name)
        return [pattern[: pattern.rfind("/") + 1] + name.rsplit("/", 1)[1] if shift else name for name in found]

    def used(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self._entries.values() if stat.S_ISREG(entry.mode))

    def saved(self) -> tuple[SavedFile, ...]:
        """What a person put into /data/local and the shared storage."""
        return tuple(
            SavedFile(path, entry.mode, entry.modified, entry.payload, entry.spool.name if entry.spool else "")
            for path, entry in sorted(self._entries.items())
            if path.startswith(_KEPT)
        )

    def restore(self, files: Iterable[SavedFile], spools: Path) -> None:
        """Put saved files back and remove host files that none of them names."""
        named = {saved.spool for saved in files}
        for left in spools.glob("content-*"):
            if left.name not in named:
                left.unlink()
        if not named:
            return
        for path in [path for path in self._entries if path.startswith(_KEPT)]:
            del self._entries[path]
        for saved in files:
            spool = spools / saved.spool if saved.spool else None
            if spool is None or spool.is_file():
                self._entries[saved.path] = Entry(saved.mode, saved.modified, saved.payload, spool)

    def has_room(self, size: int) -> bool:
        """Whether /data takes this many bytes more."""
        return not self._is_full() and self.used() + size <= self.room

    def place(self, path: str, payload: bytes, mode: int = 0o644) -> None:
        """Put a file anywhere, as the system itself does."""
        real = self.resolve(path)
        self._make_parents(real, 0o755)
        self._entries[real] = Entry(stat.S_IFREG | mode, int(self._now()), payload)

    def remove_system(self, path: str) -> None:
        """Remove a directory and what is in it wherever it lies, as the system itself does."""
        for name in list(self.below(path)):
            self._forget(name)

    def _forget(self, real: str) -> None:
        entry = self._entries.pop(real, None)
        if entry is not None and entry.spool is not None:
            entry.spool.unlink(missing_ok=True)

    def _check_room(self, path: str, size: int) -> None:
        old = self._entries.get(self.resolve(path))
        if self._is_full() or self.used() - (old.size if old else 0) + size > self.room:
            raise FileError(NO_SPACE)

    def _paths(self) -> Iterator[str]:
        yield from self._entries
        yield from self._made

    def _check_writable(self, real: str) -> None:
        if real.startswith(("/data/", "/storage/", "/dev/", "/mnt/", "/cache/")) and not real.startswith("/data/app/"):
            return
        if self.root and real.startswith("/data/"):
            return
        raise FileError(DENIED if real.startswith("/data/") else READ_ONLY)

    def _make_parents(self, path: str, mode: int) -> None:
        parts = path.split("/")[1:-1]
        for length in range(1, len(parts) + 1):
            name = "/" + "/".join(parts[:length])
            self._entries.setdefault(name, Entry(stat.S_IFDIR | mode, int(self._now())))
