"""Who is inside: a process with this broker, or a terminal of ours, among its ancestors."""

import os
from collections.abc import Mapping
from pathlib import Path

from lomi.core.inside import TERMINAL_MARK
from lomi.core.processes import stat_fields


def parent_of(pid: int, proc: Path) -> int | None:
    """The parent of a process, None where it is gone."""
    fields = stat_fields(pid, proc)
    return int(fields[1]) if fields is not None else None


def ancestors_of(pid: int, proc: Path) -> tuple[int, ...]:
    """The process itself and its ancestors, nearest first."""
    found: list[int] = []
    current: int | None = pid
    while current and current not in found:
        found.append(current)
        current = parent_of(current, proc)
    return tuple(found)


def has_terminal(pid: int, proc: Path) -> bool:
    """Whether a process has a controlling terminal, or there is no /proc."""
    if not proc.is_dir():
        return True
    fields = stat_fields(pid, proc)
    return fields is not None and fields[4] != "0"


def is_inside(pid: int, proc: Path) -> bool:
    """Whether this broker is an ancestor of `pid`. A process that can't be read counts as inside: it proves nothing."""
    found = ancestors_of(pid, proc)
    return os.getpid() in found[1:] or len(found) < 2


def hosted_by_lomi(environment: Mapping[str, str], proc: Path) -> bool:
    """Whether this process runs in a terminal of a broker: by the mark in its environment, or by its ancestors."""
    if TERMINAL_MARK in environment:
        return True
    for pid in ancestors_of(os.getpid(), proc)[1:]:
        try:
            words = (proc / str(pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        names = [Path(os.fsdecode(word)).name for word in words[:3]]
        # `sudo lomi up` and `timeout 9 lomi up` only wait for what they started: they are no broker.
        if b"up" in words and "lomi" in names and (names[0] == "lomi" or names[0].startswith(("python", "pypy"))):
            return True
    return False
