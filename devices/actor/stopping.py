"""Taking a device down until it is observed gone."""

import asyncio

from devices import processes
from devices.adb.server import AdbServer
from devices.adb.shell import ShellLane
from devices.console import open_console
from devices.faults import ChannelLost
from devices.spec import DeviceSpec, Identity, StopRule
from devices.world import World
from lomi.core.processes import ProcessName, is_alive


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

    `sync_lane` is given when the device runs and its disks should be flushed first. Only one whose console has taken
    the request is waited for; one that answers nothing is ended within `StopRule.silent_s`.
    """
    rule = spec.stopping
    if not exited.done() and await _asked_to_end(identity, server, rule, sync_lane):
        await asyncio.wait((exited,), timeout=rule.exit_s)
    left = await asyncio.to_thread(processes.carriers, identity.marker)
    if not exited.done() and identity.process not in left and is_alive(identity.process):
        left = (*left, identity.process)
    if not left:
        return ()
    return await processes.end_processes(left, world=world, term_s=rule.term_s, kill_s=rule.kill_s)


async def end_orphan(identity: Identity, *, world: World, term_s: float = 3.0, kill_s: float = 5.0) -> bool:
    """End what an earlier broker left behind: only processes that pid, start time and marker prove to be that life.

    Answers True when nothing of it lives any more, False when something could not be observed gone.
    """
    left = await asyncio.to_thread(processes.carriers, identity.marker)
    if is_alive(identity.process) and identity.process not in left:
        left = (*left, identity.process)
    return not left or not await processes.end_processes(left, world=world, term_s=term_s, kill_s=kill_s)


async def _asked_to_end(identity: Identity, server: AdbServer, rule: StopRule, sync_lane: ShellLane | None) -> bool:
    """Whether the console took the request to end; the disks are flushed while it opens, and before it is asked."""
    flushed = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_flush(sync_lane, rule.sync_s, flushed))
        return await group.create_task(_ask_console(identity, server, rule.console_s, flushed))


async def _flush(lane: ShellLane | None, within: float, flushed: asyncio.Event) -> None:
    try:
        if lane is not None:
            async with asyncio.timeout(within):
                await lane.run("sync", within=within)
    except (ChannelLost, TimeoutError):
        return
    finally:
        flushed.set()


async def _ask_console(identity: Identity, server: AdbServer, within: float, flushed: asyncio.Event) -> bool:
    asked = False
    try:
        async with open_console(identity.ports.console, server.home, step_s=within) as console:
            await flushed.wait()
            asked = True
            await console.command("kill")
    except ChannelLost as fault:
        # A console that closes while it answers has obeyed; one that is silent or not there never heard us.
        return asked and fault.reason == "channel_lost"
    return True
