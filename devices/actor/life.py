"""One run of one device's emulator process, from spawn to observed gone, as one task."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from devices.actor import boot, exits, locks
from devices.actor.launch import launch_argv, launch_environment, put_snapshot_aside
from devices.actor.ports import PortPairs
from devices.actor.stopping import take_down
from devices.adb.server import AdbServer
from devices.adb.shell import ShellLane
from devices.engine.channel import EmulatorChannel, is_available, open_channel
from devices.engine.discovery import announced
from devices.faults import BootFailed, ChannelLost, DeviceFault, EmulatorExited, LaunchRefused, StopUnconfirmed
from devices.spec import UNBORN, DeviceSpec, Identity, Ports, Running
from devices.tasks import background
from devices.world import Child, OutputTail, World
from lomi.core.processes import name_of

Phase = Literal["stopped", "starting", "booting", "running", "offline", "stopping", "failed"]
OnIdentity = Callable[[Identity], Awaitable[None]]
NextGeneration = Callable[[str], Awaitable[str]]
_TRIES = 4
_T = TypeVar("_T")


class _StopAskedError(Exception):
    """A stop was asked for while something else was being waited for."""


@dataclass(frozen=True, slots=True)
class Host:
    """What every device of one process shares.

    `launching` serialises the critical part of launches, `installs` caps installs.
    `next_generation(device_id)` answers with a fresh stored generation; `on_identity` stores an identity before the
    device is used. Whatever they raise fails the start, and the process is ended.
    """

    server: AdbServer
    world: World
    ports: PortPairs
    launching: asyncio.Lock
    installs: asyncio.Semaphore
    next_generation: NextGeneration
    on_identity: OnIdentity


@dataclass(frozen=True, slots=True)
class Lanes:
    """The ways to a running device.

    Three kept shells, for acting, for looking and for pictures, so that a slow look never delays an act; each is opened
    by its first call. And the emulator's own channel where it is offered. `without_engine` names why there is none:
    everything then goes over adb.
    """

    act: ShellLane
    look: ShellLane
    film: ShellLane
    engine: EmulatorChannel | None = None
    without_engine: str | None = "not_asked_for"

    def abandon(self) -> None:
        """Cut all at once."""
        self.act.abandon()
        self.look.abandon()
        self.film.abandon()

    async def close(self) -> None:
        """Cut all and wait for whoever still uses them."""
        self.abandon()
        await self.act.close()
        await self.look.close()
        await self.film.close()


class Life:
    """One life of the emulator process. `run` is its task; everything else reads or asks.

    `settled` is set when the device is ready or the start has failed and nothing of it is left; `gone` when nothing is
    left; `stop_tried` when a stop has been tried, successful or not.
    """

    def __init__(self, spec: DeviceSpec, host: Host, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.phase: Phase = "starting"
        self.running: Running | None = None
        self.identity: Identity | None = None
        self.lanes: Lanes | None = None
        self.failure: DeviceFault | None = None
        self.settled = asyncio.Event()
        self.gone = asyncio.Event()
        self.stop_asked = asyncio.Event()
        self.stop_tried = asyncio.Event()
        self._host = host
        self._changed = changed
        self.cold = False
        self._tail: OutputTail | None = None
        self._closing = False

    @property
    def output(self) -> str:
        """The tail of the emulator's output, untrusted text."""
        return "" if self._tail is None else self._tail.text()

    async def run(self) -> None:
        """Live: bring up, watch, take down. Faults end in `failure`, never in an exception."""
        try:
            for _ in range(_TRIES):
                self.failure = None
                await self._one_process()
                if self.stop_asked.is_set() or not await self._worth_another_try():
                    break
        except LaunchRefused as fault:
            self.failure = fault
        finally:
            # Gone before anyone is told: whoever hears of the end must find the process observed gone.
            if not isinstance(self.failure, StopUnconfirmed):
                self.gone.set()
            self._enter("failed" if self.failure is not None else "stopped")
            self.settled.set()
            self.stop_tried.set()

    async def _one_process(self) -> None:
        async with AsyncExitStack() as stack:
            ports = stack.enter_context(self._host.ports.hold(grpc=self.spec.grpc))
            tail = await stack.enter_async_context(OutputTail())
            self._tail = tail
            marker = self._host.world.token()
            client = self._host.server.client
            act, look, film = (ShellLane(client, ports.serial, self._host.world) for _ in range(3))
            lanes = Lanes(act, look, film)
            stack.push_async_callback(lanes.close)
            group = await stack.enter_async_context(background())
            exited: asyncio.Task[int] | None = None
            identity: Identity | None = None
            try:
                async with self._host.launching:
                    coming = await self._announce(ports, marker)
                    child = await self._spawn(ports, tail, marker)
                    exited = group.create_task(child.wait(), name=f"exit-{self.spec.name}")
                    identity = await self._identify(child, exited, coming)
                    self.identity = identity
                    await _asked(self._host.on_identity(identity))
                    await self._guarded(
                        exited, boot.await_console(self.spec, ports, self._host.server, self._host.world)
                    )
                await self._use(exited, lanes, stack)
            except DeviceFault as fault:
                self.failure = fault
            except _StopAskedError:
                pass
            except OSError as broken:
                self.failure = EmulatorExited("host_error", str(broken), effect="partial")
            except asyncio.CancelledError:
                self._closing = True
                raise
            finally:
                was_running = self.running is not None
                self._stop_using()
                if exited is not None and identity is not None:
                    await self._end(identity, exited, lanes if was_running else None)

    async def _spawn(self, ports: Ports, tail: OutputTail, marker: str) -> Child:
        try:
            child = await self._host.world.spawn(
                launch_argv(self.spec, ports, cold=self.cold),
                environment=launch_environment(self.spec, self._host.server, marker),
                output=tail.child_end,
                directory=self.spec.avd_directory,
            )
        except OSError as broken:
            raise LaunchRefused("no_emulator", str(broken)) from broken
        tail.handed_over()
        return child

    async def _announce(self, ports: Ports, marker: str) -> Identity:
        """Have the life stored before there is a process of it."""
        generation = await _asked(self._host.next_generation(self.spec.device_id))
        coming = Identity(self.spec.device_id, generation, UNBORN, ports, marker)
        await _asked(self._host.on_identity(coming))
        return coming

    async def _identify(self, child: Child, exited: asyncio.Task[int], coming: Identity) -> Identity:
        name = name_of(child.pid)
        if name is None:
            raise self._exit_fault(await exited)
        return replace(coming, process=name)

    async def _use(self, exited: asyncio.Task[int], lanes: Lanes, stack: AsyncExitStack) -> None:
        assert self.identity is not None
        world, ports, stages = self._host.world, self.identity.ports, [("process", 0.0)]
        began = world.monotonic()
        self._enter("booting")

        def note(stage: str) -> None:
            if stages[-1][0] != stage:
                stages.append((stage, world.monotonic() - began))

        note("adb")
        await self._guarded(exited, boot.await_adb(self.spec, ports, self._host.server, world))
        boot_id = await self._guarded(
            exited, boot.await_ready(self.spec, ports, self._host.server, lanes.look, world, note)
        )
        lanes = await self._with_engine(lanes, ports, stack)
        while True:
            self.running = Running(self.identity, boot_id, tuple(stages), self.cold)
            self.lanes = lanes
            self._enter("running")
            self.settled.set()
            await self._guarded(exited, self._host.server.wait_state(ports.serial, lambda state: state != "device"))
            self._enter("offline")
            boot_id = await self._guarded(exited, self._come_back(ports, lanes, boot_id))

    async def _with_engine(self, lanes: Lanes, ports: Ports, stack: AsyncExitStack) -> Lanes:
        """Open the emulator's own channel where the device was started with one; adb stays for whatever it lacks."""
        if not self.spec.grpc:
            return lanes
        if not is_available():
            return replace(lanes, without_engine="grpc_not_installed")
        where = await asyncio.to_thread(announced, self._host.server.runtime_directory, ports)
        if where is None:
            return replace(lanes, without_engine="grpc_not_announced")
        try:
            engine = await stack.enter_async_context(open_channel(where))
        except ChannelLost as fault:
            return replace(lanes, without_engine=fault.reason)
        return replace(lanes, engine=engine, without_engine=None)

    async def _come_back(self, ports: Ports, lanes: Lanes, boot_id: str) -> str:
        """Wait for the device to return; a late return, or one with another boot id, is a new generation."""
        world, server = self._host.world, self._host.server
        began, pause = world.monotonic(), 0.05
        while (state := server.state_of(ports.serial)) != "device":
            if state is None:
                await boot.announce(server, ports)
            if self.running is not None and world.monotonic() - began > self.spec.readiness.offline_grace_s:
                self._stop_using()
                self._changed()
            await world.sleep(pause)
            pause = min(pause * 1.5, 1.0)
        returned = await boot.await_ready(self.spec, ports, server, lanes.look, world, lambda _stage: None)
        if returned != boot_id or self.running is None:
            self._stop_using()
            assert self.identity is not None
            generation = await _asked(self._host.next_generation(self.spec.device_id))
            self.identity = replace(self.identity, generation=generation)
            await _asked(self._host.on_identity(self.identity))
        return returned

    async def _end(self, identity: Identity, exited: asyncio.Task[int], lanes: Lanes | None) -> None:
        """Take everything of this life down, again on every request, until it is observed gone."""
        self._enter("stopping")
        while True:
            left = await take_down(
                self.spec,
                identity,
                exited,
                sync_lane=None if lanes is None else lanes.look,
                server=self._host.server,
                world=self._host.world,
            )
            if not left:
                break
            fields: dict[str, str | int] = {"left": len(left), "pid": left[0].pid}
            self.failure = StopUnconfirmed("stop_unconfirmed", "not observed gone", effect="unknown", fields=fields)
            if self._closing:
                return
            self._enter("failed")
            self.stop_asked.clear()
            self.settled.set()
            self.stop_tried.set()
            await self.stop_asked.wait()
            self._enter("stopping")
        if isinstance(self.failure, StopUnconfirmed):
            self.failure = None
        with suppress(OSError):
            await asyncio.to_thread(locks.remove_dead, self.spec.avd_directory, frozenset((identity.process,)))

    async def _guarded(self, exited: asyncio.Task[int], work: Coroutine[Any, Any, _T]) -> _T:
        """Do `work` for as long as the process lives and nobody asks for a stop.

        Raises:
            EmulatorExited: the process ended first.
            DeviceFault: what `work` raised while the process lives.
        """
        results: list[_T] = []
        faults: list[DeviceFault] = []

        async def do() -> None:
            try:
                results.append(await work)
            except DeviceFault as fault:
                faults.append(fault)

        async with asyncio.TaskGroup() as group:
            doing = group.create_task(do())
            asked = group.create_task(self.stop_asked.wait())
            await asyncio.wait((doing, asked, exited), return_when=asyncio.FIRST_COMPLETED)
            doing.cancel()
            asked.cancel()
        if exited.done():
            raise self._exit_fault(exited.result())
        if self.stop_asked.is_set():
            raise _StopAskedError
        if faults:
            raise faults[0]
        return results[0]

    def _exit_fault(self, code: int | None) -> DeviceFault:
        if self._tail is not None:
            self._tail.drain()
        text = self.output
        reason = exits.cause_of(text)
        if reason == "avd_locked" and not any(lock.owner_alive for lock in locks.locks_in(self.spec.avd_directory)):
            reason = "avd_locked_stale"
        fields: dict[str, str | int] = {} if code is None else {"exit": code}
        return EmulatorExited(reason, f"the emulator ended with {code}", evidence=text, fields=fields)

    async def _worth_another_try(self) -> bool:
        """A taken port is tried elsewhere; a bad quick-boot snapshot is put aside and booted without, once."""
        if self.failure is None:
            return False
        if self.failure.reason == "port_taken":
            return True
        booting = isinstance(self.failure, BootFailed) and self.failure.reason in {"boot_timeout", "system_dialog"}
        if booting and self.spec.quick_boot and not self.cold:
            self.cold = True
            await asyncio.to_thread(put_snapshot_aside, self.spec)
            return True
        return False

    def _stop_using(self) -> None:
        self.running = None
        lanes, self.lanes = self.lanes, None
        if lanes is not None:
            lanes.abandon()

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._changed()


async def _asked(answer: Awaitable[_T]) -> _T:
    """What the owner of the fleet answers; its own failures become ours and cannot take other devices down.

    Raises:
        EmulatorExited: reason not_recorded.
    """
    (result,) = await asyncio.gather(answer, return_exceptions=True)
    if isinstance(result, DeviceFault) or (isinstance(result, BaseException) and not isinstance(result, Exception)):
        raise result
    if isinstance(result, Exception):
        raise EmulatorExited("not_recorded", str(result), effect="none") from result
    return result
