"""The stages between a started process and a device that can be used, each with a deadline and a named failure."""

from collections.abc import Callable
from dataclasses import dataclass

from devices import focus
from devices.adb.server import AdbServer
from devices.adb.shell import ShellLane
from devices.console import open_console
from devices.faults import BootFailed, ChannelLost
from devices.spec import DeviceSpec, Ports
from devices.world import World

_SPLIT = "~~"
_FIRST_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Look:
    """One poll of a booting device."""

    booted: bool
    animation_stopped: bool
    boot_id: str
    avd_name: str
    missing: tuple[str, ...]
    focus: focus.Focus

    @property
    def unready(self) -> str | None:
        """The first thing that keeps the device from being ready, None when nothing does."""
        if not self.booted:
            return "boot_flag"
        if not self.animation_stopped:
            return "boot_animation"
        if self.missing:
            return f"service_{self.missing[0]}"
        return "system_dialog" if self.focus.kind in {"anr_dialog", "crash_dialog"} else None


async def await_console(spec: DeviceSpec, ports: Ports, server: AdbServer, world: World) -> None:
    """Wait until the console answers, then make sure it speaks for our AVD.

    Raises:
        BootFailed: reason boot_timeout (stage process) or wrong_device.
    """
    end = world.monotonic() + spec.readiness.process_s
    pause = _FIRST_PAUSE_S
    while True:
        try:
            async with open_console(ports.console, server.home, step_s=2.0) as console:
                lines = await console.command("avd name")
        except ChannelLost as fault:
            if world.monotonic() > end:
                raise _late("process", spec.readiness.process_s, str(fault)) from fault
            await world.sleep(pause)
            pause = min(pause * 1.5, 0.5)
        else:
            if lines[-1:] != (spec.name,):
                raise BootFailed("wrong_device", f"console {ports.console} answers for {lines[-1:]}")
            return


async def await_adb(spec: DeviceSpec, ports: Ports, server: AdbServer, world: World) -> None:
    """Announce the device to our server until it is listed as usable.

    Raises:
        BootFailed: reason boot_timeout (stage adb) or adb_unauthorized.
    """
    end = world.monotonic() + spec.readiness.adb_s
    pause = _FIRST_PAUSE_S
    while (state := server.state_of(ports.serial)) != "device":
        if world.monotonic() > end:
            if state in {"unauthorized", "authorizing"}:
                raise BootFailed("adb_unauthorized", "the device does not trust our adb key")
            raise _late("adb", spec.readiness.adb_s, f"adb state {state}")
        if state is None:
            await announce(server, ports)
        await world.sleep(pause)
        pause = min(pause * 1.5, 1.0)


async def announce(server: AdbServer, ports: Ports) -> None:
    """Tell our server of the device; a server that is away is told again at the next try."""
    try:
        await server.client.announce(ports.adb)
    except ChannelLost:
        return


async def await_ready(
    spec: DeviceSpec, ports: Ports, server: AdbServer, lane: ShellLane, world: World, note: Callable[[str], None]
) -> str:
    """Poll until the readiness rule holds; answers with Android's boot id.

    Raises:
        BootFailed: reason boot_timeout (field stage names what is missing), boot_loop, wrong_device or system_dialog.
    """
    rule = spec.readiness
    end = world.monotonic() + rule.boot_s
    boot_id, changes, stable, stage, pause = "", 0, 0, "adb", _FIRST_PAUSE_S
    while True:
        try:
            seen = await look(lane, rule.services)
        except ChannelLost:
            seen, stable = None, 0
            if server.state_of(ports.serial) is None:
                await announce(server, ports)
        if seen is not None and seen.boot_id != boot_id:
            changes += bool(boot_id)
            boot_id, stable = seen.boot_id, 0
            if changes > rule.reboots_allowed:
                raise BootFailed("boot_loop", f"the boot id changed {changes} times", fields={"changes": changes})
        if seen is not None:
            if seen.avd_name and seen.avd_name != spec.name:
                raise BootFailed("wrong_device", f"adb answers for {seen.avd_name}")
            stage = seen.unready or "stable"
            note(stage)
            stable = 0 if seen.unready else stable + 1
            if stable >= rule.stable_polls:
                return boot_id
        if world.monotonic() > end:
            raise _late(stage, rule.boot_s, "the readiness rule does not hold")
        await world.sleep(rule.poll_s if stage == "stable" else min(pause, rule.poll_s))
        pause *= 1.5


async def look(lane: ShellLane, services: tuple[str, ...]) -> Look:
    """Ask a device for its boot flags, boot id, services and focus in one shell call.

    Raises:
        ChannelLost: the device cannot be asked now.
    """
    parts = (
        "getprop sys.boot_completed",
        "getprop init.svc.bootanim",
        "cat /proc/sys/kernel/random/boot_id",
        "getprop ro.boot.qemu.avd_name",
        focus.FOCUS_LINE,
        *(f"service check {name}" for name in services),
    )
    answer = await lane.run(f"; echo {_SPLIT}; ".join(parts), within=20.0)
    fields = [part.strip() for part in answer.text.split(f"{_SPLIT}\n")]
    fields += [""] * (len(parts) - len(fields))
    missing = tuple(name for name, text in zip(services, fields[5:], strict=False) if not text.endswith(": found"))
    return Look(
        booted=fields[0] == "1",
        animation_stopped=fields[1] in {"stopped", ""},
        boot_id=fields[2],
        avd_name=fields[3],
        missing=missing,
        focus=focus.parse(fields[4]),
    )


def _late(stage: str, seconds: float, detail: str) -> BootFailed:
    reason = "system_dialog" if stage == "system_dialog" else "boot_timeout"
    fields: dict[str, str | int] = {"stage": stage, "seconds": int(seconds)}
    return BootFailed(reason, f"stage {stage} took longer than {seconds:g} s: {detail}", fields=fields)
