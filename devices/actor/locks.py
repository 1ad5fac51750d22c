"""AVD lock files: whose they are, whether their owner lives, and removal of our own dead ones."""

import os
from dataclasses import dataclass
from pathlib import Path

from lomi.core.processes import ProcessName, is_alive, start_ticks

_LOCK_NAMES = ("*.lock", "*.ini.lock")


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock in an AVD folder and the pid it names, None when it names nobody."""

    path: Path
    pid: int | None

    @property
    def owner_alive(self) -> bool:
        """Whether a process with the named pid lives; a lock that names nobody counts as dead."""
        return self.pid is not None and start_ticks(self.pid) is not None


def locks_in(avd_directory: Path) -> tuple[Lock, ...]:
    """All locks of an AVD; the emulator writes files with its pid, or folders holding a `pid` file."""
    paths = sorted({path for pattern in _LOCK_NAMES for path in avd_directory.glob(pattern)})
    return tuple(Lock(path, _pid_in(path)) for path in paths)


def remove_dead(avd_directory: Path, known: frozenset[ProcessName]) -> tuple[Lock, ...]:
    """Remove locks left by processes in `known` (lives of ours, proven dead); answers with the locks that remain.

    A lock of an unknown process stays even when it looks dead: it is not ours to judge.
    """
    dead = {name.pid for name in known if not is_alive(name)}
    left = []
    for lock in locks_in(avd_directory):
        if lock.pid in dead and not lock.owner_alive:
            _remove(lock.path)
        else:
            left.append(lock)
    return tuple(left)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            inner.unlink(missing_ok=True)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _pid_in(path: Path) -> int | None:
    for candidate in (path, path / "pid"):
        try:
            words = os.fsdecode(candidate.read_bytes()[:64]).replace("\0", " ").split()
        except OSError:
            continue
        if words and words[0].isdigit():
            return int(words[0])
    return None
