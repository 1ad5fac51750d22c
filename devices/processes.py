"""Processes as the kernel shows them: who they are, whether they live, and how to end what is ours."""

import os
import signal
from collections.abc import Iterable
from pathlib import Path

from devices.world import World
from lomi.core.processes import ProcessName, is_alive, name_of

_PROC = Path("/proc")
MARKER_VARIABLE = "LOMI_DEVICE_MARKER"
"""Environment variable that every process of one device life inherits; its value is fresh per launch."""


def carriers(marker: str, variable: str = MARKER_VARIABLE) -> tuple[ProcessName, ...]:
    """Living processes of this user that inherited `marker` in their environment. Empty where there is no /proc."""
    wanted = f"{variable}={marker}".encode()
    found = []
    for entry in _PROC.glob("[0-9]*"):
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
