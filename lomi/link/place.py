"""The private directory and socket a broker listens on."""

import contextlib
import os
import socket
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from lomi.disk.walk import Identity
from lomi.link.errors import SocketPathTooLongError
from lomi.link.limits import MAX_SOCKET_PATH

SOCKET_NAME = "control.sock"
_PREFIX = "lomi-control-"


class Place(NamedTuple):
    """A bound socket with its names: `path` in a directory of its own."""

    path: Path
    listener: socket.socket
    identity: Identity

    def stands(self) -> bool:
        """Whether the name still leads to this socket."""
        try:
            status = self.path.lstat()
        except OSError:
            return False
        return Identity.of(status) == self.identity and stat.S_ISSOCK(status.st_mode)

    def remove(self) -> None:
        """Stop listening; remove the name, if it still is ours, and its directory, if it is empty."""
        self.listener.close()
        if self.stands():
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
        with contextlib.suppress(OSError):
            self.path.parent.rmdir()


def remove_dead(path: Path) -> None:
    """Remove a socket of ours that nobody listens on any more, and its directory."""
    if path.name != SOCKET_NAME or not path.parent.name.startswith(_PREFIX):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, contextlib.suppress(OSError):
        try:
            if path.parent.lstat().st_uid != os.getuid():
                return
            probe.settimeout(1)
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            path.parent.rmdir()


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
        return Place(path, listener, Identity.of(path.lstat()))
    except OSError:
        listener.close()
        with contextlib.suppress(OSError):
            path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
        raise
