"""The one owner of one device: coalesced starts, one life at a time, stops that are observed."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from devices.actor import preflight
from devices.actor.life import Host, Lanes, Life, Phase
from devices.faults import DeviceFault, NotRunning
from devices.spec import DeviceSpec, Identity, Running
from lomi.core.processes import ProcessName


class DeviceActor:
    """Owns the emulator process of one device. Made by `Fleet`; lives are tasks of the fleet's group."""

    def __init__(
        self, spec: DeviceSpec, host: Host, group: asyncio.TaskGroup, changed: Callable[["DeviceActor"], None]
    ) -> None:
        self.spec = spec
        self._host = host
        self._group = group
        self._changed = changed
        self._life: Life | None = None
        self._starters = 0
        self._known: set[ProcessName] = set()

    @property
    def phase(self) -> Phase:
        """Where the device is in its life."""
        return "stopped" if self._life is None else self._life.phase

    @property
    def process_alive(self) -> bool:
        """Whether a process of this device is known and not yet observed gone."""
        return self._life is not None and self._life.identity is not None and not self._life.gone.is_set()

    @property
    def identity(self) -> Identity | None:
        """Who the living process is, from before it is used until it is observed gone."""
        return self._life.identity if self._life is not None and self.process_alive else None

    @property
    def last_generation(self) -> str | None:
        """The generation of the last life that was identified, living or gone."""
        return self._life.identity.generation if self._life is not None and self._life.identity is not None else None

    @property
    def running(self) -> Running | None:
        """The ready device, None unless it is running or only briefly offline."""
        return None if self._life is None else self._life.running

    @property
    def failure(self) -> DeviceFault | None:
        """Why the last life failed."""
        return None if self._life is None else self._life.failure

    @property
    def output(self) -> str:
        """The tail of the emulator's output, untrusted text."""
        return "" if self._life is None else self._life.output

    def usable(self, generation: str | None) -> tuple[Running, Lanes]:
        """The running device and its lanes.

        Raises:
            NotRunning: it does not run, is offline, or runs another generation.
        """
        life = self._life
        if life is None or life.running is None or life.lanes is None:
            raise NotRunning("not_running", f"{self.spec.name} is {self.phase}")
        if generation is not None and life.running.identity.generation != generation:
            raise NotRunning("other_generation", f"{self.spec.name} runs another generation")
        if life.phase == "offline":
            raise NotRunning("offline", f"{self.spec.name} is offline")
        return life.running, life.lanes

    def adopt_history(self, processes: frozenset[ProcessName]) -> None:
        """Name processes of earlier lives of this device, so that their dead locks may be removed."""
        self._known |= processes

    async def start(self, *, effect: AbstractAsyncContextManager[None] | None = None) -> Running:
        """Start the device, or join a start under way, and wait until it is ready.

        When the last caller who waits goes away the start is undone.

        Raises:
            LaunchRefused: preflight said no, before `effect` was entered.
            EmulatorExited: the process ended first.
            BootFailed: a stage missed its deadline; the process has been ended.
            StopUnconfirmed: the failed start could not be observed gone; the device is still owned.
        """
        while (life := self._life) is not None and life.phase == "stopping":
            await life.stop_tried.wait()
        if life is None or life.gone.is_set():
            await asyncio.to_thread(preflight.check, self.spec, frozenset(self._known))
        async with effect or nullcontext():
            life = self._life
            if life is None or life.gone.is_set():
                life = self._life = Life(self.spec, self._host, lambda: self._changed(self))
                self._group.create_task(self._live(life), name=f"life-{self.spec.name}")
            return await self._await_ready(life)

    async def stop(self, *, effect: AbstractAsyncContextManager[None] | None = None) -> None:
        """Stop the device and wait until it is observed gone; nothing to do when it already is.

        Raises:
            StopUnconfirmed: it was not observed gone; it stays owned and a later stop tries again.
        """
        async with effect or nullcontext():
            life = self._life
            if life is None or life.gone.is_set():
                return
            life.stop_tried.clear()
            life.stop_asked.set()
            await life.stop_tried.wait()
            if not life.gone.is_set() and life.failure is not None:
                raise life.failure

    async def _live(self, life: Life) -> None:
        await life.run()
        if life.identity is not None:
            self._known.add(life.identity.process)

    async def _await_ready(self, life: Life) -> Running:
        self._starters += 1
        try:
            await life.settled.wait()
        finally:
            self._starters -= 1
            if self._starters == 0 and not life.settled.is_set():
                life.stop_asked.set()
        if life.running is not None:
            return life.running
        if life.failure is not None:
            raise life.failure
        raise NotRunning("not_running", "the start was stopped")
