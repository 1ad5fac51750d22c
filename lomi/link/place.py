"""The private directory and socket a broker listens on, and who is at the other end."""

import contextlib
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from lomi.link.errors import SocketPathTooLongError
from lomi.link.limits import MAX_SOCKET_PATH

SOCKET_NAME = "control.sock"
_PREFIX = "lomi-control-"


class Peer(NamedTuple):
    """The process that connected, as the kernel recorded it; `pid` is 0 where the system does not say."""

    pid: int
    uid: int


def peer_of(connection: socket.socket) -> Peer:
    """Return who is at the other end of a Unix socket."""
    if hasattr(socket, "SO_PEERCRED"):
        pid, uid, _group = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return Peer(pid, uid)
    # LOCAL_PEERCRED (macOS, the BSDs) begins a struct xucred: version, uid.
    _version, uid = struct.unpack("Ii", connection.getsockopt(0, 1, 8))
    return Peer(0, uid)


class Place(NamedTuple):
    """A bound socket with its names: `path` in a directory of its own."""

    path: Path
    listener: socket.socket
    inode: int

    def stands(self) -> bool:
        """Whether the name still leads to this socket."""
        try:
            status = self.path.lstat()
        except OSError:
            return False
        return status.st_ino == self.inode and stat.S_ISSOCK(status.st_mode)

    def remove(self) -> None:
        """Remove the name, if it still is ours, and its directory, if it is empty."""
        if self.stands():
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
        with contextlib.suppress(OSError):
            self.path.parent.rmdir()


def bind(environment: Mapping[str, str], random: Callable[[int], bytes]) -> Place:
    """Bind a socket in a fresh directory below `XDG_RUNTIME_DIR`, or else below the temp directory.

    Raises:
        SocketPathTooLongError: no candidate gives a path of at most 107 bytes.
        OSError: no candidate can be written.
    """
    candidates = [Path(tempfile.gettempdir())]
    if (runtime := environment.get("XDG_RUNTIME_DIR")) and _usable(Path(runtime)):
        candidates.insert(0, Path(runtime))
    name = _PREFIX + random(8).hex()
    paths = [candidate.resolve() / name / SOCKET_NAME for candidate in candidates]
    fitting = [path for path in paths if len(os.fsencode(path)) <= MAX_SOCKET_PATH]
    if not fitting:
        raise SocketPathTooLongError(str(paths[0]), len(os.fsencode(paths[0])), MAX_SOCKET_PATH)
    return _bind_at(fitting[0])


def _usable(directory: Path) -> bool:
    try:
        status = directory.stat()
    except OSError:
        return False
    return directory.is_absolute() and status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode)


def _bind_at(path: Path) -> Place:
    path.parent.mkdir(mode=0o700)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.settimeout(0)
        listener.bind(str(path))
        # Nobody can connect before listen(), so there is no moment with a wider mode.
        path.chmod(0o600)
        return Place(path, listener, path.lstat().st_ino)
    except OSError:
        listener.close()
        with contextlib.suppress(OSError):
            path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
        raise
