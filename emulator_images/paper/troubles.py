"""Faults that strike by time, not by occasion: offline, display off, another adb, a sudden death."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

from emulator_images.paper.boot import Stage
from emulator_images.paper.faults import Fault
from emulator_images.paper.phone import Phone

_A_MOMENT = 0.1  # so that the command which planned the fault still gets its answer


async def run_troubles(phone: Phone, go_offline: Callable[[float], None], die: Callable[[int], None]) -> None:
    """Let timed faults strike, those of the plan and those added while the phone runs."""
    await phone.boot.reached(Stage.READY)
    async with asyncio.TaskGroup() as group:
        while True:
            phone.faults.changed.clear()
            if (fault := phone.faults.strikes("offline")) is not None:
                group.create_task(_offline(fault, go_offline))
            if (fault := phone.faults.strikes("display_off")) is not None:
                group.create_task(_display_off(phone, fault))
            if (fault := phone.faults.strikes("adb_server_replaced")) is not None:
                group.create_task(_replace_server(phone, fault))
            if (fault := phone.faults.strikes("dies")) is not None:
                group.create_task(_die(fault, die))
            await phone.faults.changed.wait()


async def _offline(fault: Fault, go_offline: Callable[[float], None]) -> None:
    await asyncio.sleep(max(fault.delay, _A_MOMENT))
    go_offline(fault.seconds)


async def _display_off(phone: Phone, fault: Fault) -> None:
    await asyncio.sleep(fault.delay)
    phone.stage.awake = False


async def _replace_server(phone: Phone, fault: Fault) -> None:
    """Do what an adb of another version does: kill the server, so that its own can take over."""
    await asyncio.sleep(max(fault.delay, _A_MOMENT))
    with suppress(OSError):
        if fault.text.isdecimal():
            _, writer = await asyncio.open_connection("127.0.0.1", int(fault.text))
        else:
            _, writer = await asyncio.open_unix_connection(fault.text)
        writer.write(b"0009host:kill")
        await writer.drain()
        writer.close()
    phone.record("adb_server_replaced", server=fault.text)


async def _die(fault: Fault, die: Callable[[int], None]) -> None:
    await asyncio.sleep(fault.delay)
    if fault.text:
        sys.stderr.write(fault.text + "\n")
        sys.stderr.flush()
    die(fault.value)


def hold_pipes(fault: Fault) -> int:
    """Start a child that keeps this process's output pipes open after its end, as crash handlers do; gives its pid."""
    child = subprocess.Popen(["sleep", str(fault.seconds or 60)], stdin=subprocess.DEVNULL)  # noqa: S607
    child.returncode = 0  # it outlives this process on purpose: nobody waits for it
    return child.pid
