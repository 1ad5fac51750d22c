"""Processes as the kernel shows them: who one is, and whether it still lives. Nothing here signals anything."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

PROC = Path("/proc")


class ProcessName(msgspec.Struct, frozen=True):
    """A process named so that the name can never fit another one.

    `started` is the start time in clock ticks since boot, `boot` the kernel's boot id that those ticks count from.
    """

    pid: int
    started: int
    boot: str


def stat_fields(pid: int, proc: Path = PROC) -> list[str] | None:
    """Fields 3 and on of a process's `stat`, so that index 0 is its state; None where there is none.

    Source: proc(5). The name in field 2 may itself hold spaces and parentheses.
    """
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > 19 else None


def start_ticks(pid: int, proc: Path = PROC) -> int | None:
    """Start time of a living process in clock ticks since boot; None when it is gone or only a zombie is left."""
    fields = stat_fields(pid, proc)
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


def kernel_boot(proc: Path = PROC) -> str:
    """This boot of the host's kernel; empty where the system does not tell."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def name_of(pid: int) -> ProcessName | None:
    """The full name of a living process."""
    ticks = start_ticks(pid)
    return None if ticks is None else ProcessName(pid, ticks, kernel_boot())


def is_alive(name: ProcessName) -> bool:
    """Whether exactly this process still runs: same pid, same start time, same boot."""
    return name.boot == kernel_boot() and start_ticks(name.pid) == name.started


class Member(NamedTuple):
    """A process of a session, and its process group."""

    name: ProcessName
    group: int


def session_members(leader: ProcessName, proc: Path = PROC) -> Iterator[Member]:
    """What runs in the session that a process has led, itself not counted, whether or not it still lives.

    Nothing where the system does not tell, and where another process now has the leader's pid. The kernel gives it to
    none while the session has a member; once it is empty, another one may come to bear its number.
    """
    if not leader.boot or leader.boot != kernel_boot(proc):
        return
    led = stat_fields(leader.pid, proc)
    if led is not None and int(led[19]) != leader.started:
        return
    for entry in proc.iterdir():
        if entry.name.isdigit() and int(entry.name) != leader.pid:
            fields = stat_fields(int(entry.name), proc)
            if fields is None or fields[0] in "ZX" or int(fields[3]) != leader.pid:
                continue
            if int(fields[19]) >= leader.started:
                yield Member(ProcessName(int(entry.name), int(fields[19]), leader.boot), int(fields[2]))


def ignores(pid: int, number: int, proc: Path = PROC) -> bool:
    """Whether a process ignores a signal, or the system does not tell. One that is gone ignores none.

    Source: proc_pid_status(5), SigIgn.
    """
    try:
        text = (proc / str(pid) / "status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    # At the start of a line: the name, which comes before it, may be anything else.
    fields = text.partition("\nSigIgn:")[2].split()
    return not fields or bool(int(fields[0], 16) & 1 << (number - 1))
