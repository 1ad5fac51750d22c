"""Processes as the kernel shows them: who they are, whether they live, and how to end what is ours."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from devices.world import World
from lomi.core.processes import ProcessName, is_alive, name_of

_PROC = Path("/proc")
MARKER_VARIABLE = "LOMI_DEVICE_MARKER"
"""Environment variable that every process of one device life inherits; its value is fresh per launch."""
_LOOKS, _LOOK_S = 200, 0.002


def carriers(marker: str, variable: str = MARKER_VARIABLE) -> tuple[ProcessName, ...]:
    """Living processes of this user that inherited `marker` in their environment. Empty where there is no /proc.

    Blocking. A process that is just becoming another program shows no environment: it is looked at again.
    """
    wanted = f"{variable}={marker}".encode()
    found: list[ProcessName] = []
    entries = list(_PROC.glob("[0-9]*"))
    for look in range(_LOOKS):
        if look:
            time.sleep(_LOOK_S)
        carrying = {entry: _carries(entry, wanted) for entry in entries}
        names = [name_of(int(entry.name)) for entry, carries in carrying.items() if carries]
        found += [name for name in names if name is not None]
        entries = [entry for entry, carries in carrying.items() if carries is None]
        if not entries:
            break
    return tuple(found)


def _carries(entry: Path, wanted: bytes) -> bool | None:
    """Whether a process has `wanted` in its environment; None while the kernel has not given it one yet."""
    try:
        environment = (entry / "environ").read_bytes()
        if environment:
            return wanted in environment.split(b"\0")
        # Kernel threads and zombies have no memory, other processes without an environment have a command line.
        becoming = not (entry / "cmdline").read_bytes() and not (entry / "statm").read_bytes().startswith(b"0 ")
    except OSError:
        return False
    return None if becoming else False


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
