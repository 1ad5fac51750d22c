"""One managed phone as its users see it: started, looked at, acted on, stopped."""

import asyncio
from contextlib import AbstractAsyncContextManager

from devices.actor.actor import DeviceActor
from devices.actor.life import Host, Phase
from devices.adb.shell import Answer, run_once
from devices.app_processes import AppProcesses
from devices.eyes import Eyes
from devices.faults import DeviceFault, NotRunning, StopUnconfirmed
from devices.frames import FrameFeed
from devices.hands import Hands
from devices.logs import Logs
from devices.packages import Packages
from devices.spec import DeviceSpec, Identity, Running
from lomi.core.processes import ProcessName


class Phone:
    """A device and everything that can be done with it.

    `eyes` reads, `hands` acts, `packages` installs and launches, `logs` pages through logcat, `frames` feeds viewers;
    all refuse with NotRunning unless the device runs. Calls take the generation they mean, and acting calls an
    `effect` that is entered before the first byte of the act.
    """

    def __init__(self, actor: DeviceActor, host: Host, group: asyncio.TaskGroup) -> None:
        self._actor = actor
        self._host = host
        processes = AppProcesses()
        self.eyes = Eyes(actor, host, processes)
        self.hands = Hands(actor, self.eyes)
        self.packages = Packages(actor, host, processes)
        self.logs = Logs(actor, host, processes)
        self.frames = FrameFeed(actor, host, group)

    @property
    def spec(self) -> DeviceSpec:
        """What the device is."""
        return self._actor.spec

    @property
    def phase(self) -> Phase:
        """Where it is in its life."""
        return self._actor.phase

    @property
    def process_alive(self) -> bool:
        """Whether a process of it is not yet observed gone."""
        return self._actor.process_alive

    @property
    def identity(self) -> Identity | None:
        """Who the living process is."""
        return self._actor.identity

    @property
    def last_generation(self) -> str | None:
        """The generation of the last life that was identified, living or gone."""
        return self._actor.last_generation

    @property
    def running(self) -> Running | None:
        """The ready device."""
        return self._actor.running

    @property
    def failure(self) -> DeviceFault | None:
        """Why the last life failed."""
        return self._actor.failure

    @property
    def without_engine(self) -> str | None:
        """Why a running phone's own channel is not used although it was asked for; None when it is, or was not."""
        if not self.spec.grpc:
            return None
        try:
            return self._actor.usable(None)[1].without_engine
        except NotRunning:
            return None

    @property
    def output(self) -> str:
        """The tail of the emulator's output, untrusted text."""
        return self._actor.output

    async def start(self, *, effect: AbstractAsyncContextManager[None] | None = None) -> Running:
        """Start or join a start; see `DeviceActor.start`."""
        return await self._actor.start(effect=effect)

    async def stop(self, *, effect: AbstractAsyncContextManager[None] | None = None) -> None:
        """Stop and observe it gone; see `DeviceActor.stop`."""
        await self._actor.stop(effect=effect)

    async def shell(self, line: str, *, within: float = 20.0) -> Answer:
        """Run one shell line on a connection of its own: for tests, scenarios and diagnosis, never for a client.

        Raises:
            NotRunning, ChannelLost: the device cannot be asked.
        """
        running, _ = self._actor.usable(None)
        return await run_once(self._host.server.client, running.identity.ports.serial, line, within=within)

    def adopt_history(self, earlier: frozenset[ProcessName]) -> None:
        """Name processes of earlier lives (from stored identities), so that locks they left may be removed."""
        self._actor.adopt_history(earlier)

    async def stop_quietly(self) -> None:
        """Stop at closing time: what cannot be confirmed stays recorded and is left to the next sweep."""
        try:
            await self._actor.stop()
        except StopUnconfirmed:
            return
