"""Taking a device down until it is observed gone."""

import asyncio

from devices import processes
from devices.adb.server import AdbServer
from devices.adb.shell import ShellLane
from devices.console import open_console
from devices.faults import ChannelLost
from devices.processes import ProcessName
from devices.spec import DeviceSpec, Identity
from devices.world import World


async def take_down(
    spec: DeviceSpec,
    identity: Identity,
    exited: asyncio.Task[int],
    *,
    sync_lane: ShellLane | None,
    server: AdbServer,
    world: World,
) -> tuple[ProcessName, ...]:
    """Flush, ask the console, wait, then end every process of this life; answers with those still alive.

    `sync_lane` is given when the device runs and its disks should be flushed first.
    """
    rule = spec.stopping
    if not exited.done():
        if sync_lane is not None:
            await _flush(sync_lane, rule.sync_s)
        if await _ask_console(identity, server, rule.console_s):
            await asyncio.wait((exited,), timeout=rule.exit_s)
    left = await asyncio.to_thread(processes.carriers, identity.marker)
    if not exited.done() and identity.process not in left and processes.is_alive(identity.process):
        left = (*left, identity.process)
    if not left:
        return ()
    return await processes.end_processes(left, world=world, term_s=rule.term_s, kill_s=rule.kill_s)


async def end_orphan(identity: Identity, *, world: World, term_s: float = 3.0, kill_s: float = 5.0) -> bool:
    """End what an earlier broker left behind: only processes that pid, start time and marker prove to be that life.

    Answers True when nothing of it lives any more, False when something could not be observed gone.
    """
    left = await asyncio.to_thread(processes.carriers, identity.marker)
    if processes.is_alive(identity.process) and identity.process not in left:
        left = (*left, identity.process)
    return not left or not await processes.end_processes(left, world=world, term_s=term_s, kill_s=kill_s)


async def _flush(lane: ShellLane, within: float) -> None:
    try:
        await lane.run("sync", within=within)
    except ChannelLost:
        return


async def _ask_console(identity: Identity, server: AdbServer, within: float) -> bool:
    try:
        async with open_console(identity.ports.console, server.home, step_s=within) as console:
            await console.command("kill")
    except ChannelLost as fault:
        # A console that closes while it answers has obeyed; one that is not there never heard us.
        return fault.effect == "unknown"
    return True
