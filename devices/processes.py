"""Processes as the kernel shows them: who they are, whether they live, and how to end what is ours."""

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from devices.world import World

_PROC = Path("/proc")
MARKER_VARIABLE = "LOMI_DEVICE_MARKER"
"""Environment variable that every process of one device life inherits; its value is fresh per launch."""


@dataclass(frozen=True, slots=True)
class ProcessName:
    """A process named so that the name can never fit another one.

    `started` is the start time in clock ticks since boot, `boot` the kernel's boot id those ticks count from.
    """

    pid: int
    started: int
    boot: str


def kernel_boot() -> str:
    """The host kernel's boot id, empty where the system has none."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def start_ticks(pid: int) -> int | None:
    """Start time of a living process in clock ticks since boot; None when gone or only a zombie is left."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def name_of(pid: int) -> ProcessName | None:
    """The full name of a living process."""
    ticks = start_ticks(pid)
    return None if ticks is None else ProcessName(pid, ticks, kernel_boot())


def is_alive(name: ProcessName) -> bool:
    """Whether exactly this process still runs: same pid, same start time, same kernel boot."""
    return name.boot == kernel_boot() and start_ticks(name.pid) == name.started


def carriers(marker: str) -> tuple[ProcessName, ...]:
    """Living processes of this user that inherited `marker` in their environment."""
    wanted = f"{MARKER_VARIABLE}={marker}".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            carries = wanted in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if carries and (name := name_of(int(entry.name))) is not None:
            found.append(name)
    return tuple(found)


def send_signal(name: ProcessName, number: signal.Signals) -> None:
    """Signal exactly this process through a pid descriptor; nothing when it is gone."""
    try:
        descriptor = os.pidfd_open(name.pid)
    except (ProcessLookupError, PermissionError):
        return
    try:
        if is_alive(name):
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)


async def wait_gone(names: Iterable[ProcessName], *, within: float, world: World) -> tuple[ProcessName, ...]:
    """Wait until all `names` are gone, at most `within` seconds; answers with those still alive."""
    end = world.monotonic() + within
    pause = 0.005
    left = tuple(name for name in names if is_alive(name))
    while left and world.monotonic() < end:
        await world.sleep(pause)
        pause = min(pause * 1.5, 0.25)
        left = tuple(name for name in left if is_alive(name))
    return left


async def end_processes(
    names: tuple[ProcessName, ...], *, world: World, term_s: float, kill_s: float
) -> tuple[ProcessName, ...]:
    """End `names`: SIGTERM, wait, SIGKILL, wait; answers with those that could not be observed gone."""
    for name in names:
        send_signal(name, signal.SIGTERM)
    left = await wait_gone(names, within=term_s, world=world)
    for name in left:
        send_signal(name, signal.SIGKILL)
    return await wait_gone(left, within=kill_s, world=world) if left else ()
